# GPU machines with gVNIC, placed near each other, and the hub of their Weft network, in a network
# of their own with jumbo frames. docs/recipes/terraform.md says how it is used.

terraform {
  required_version = ">= 1.3"
  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 5.0"
    }
  }
}

provider "google" {
  project = var.project
  region  = var.region
  zone    = var.zone
}

# ---- who may speak to whom ----------------------------------------------------------------------

resource "google_compute_network" "this" {
  name                    = var.name
  auto_create_subnetworks = false
  mtu                     = 8896
}

resource "google_compute_subnetwork" "this" {
  name                     = var.name
  network                  = google_compute_network.this.id
  region                   = var.region
  ip_cidr_range            = var.cidr
  private_ip_google_access = true
}

resource "google_compute_firewall" "hub" {
  name          = "${var.name}-hub"
  network       = google_compute_network.this.id
  source_ranges = ["0.0.0.0/0"]
  target_tags   = ["${var.name}-hub"]
  allow {
    protocol = "udp"
    ports    = ["51820", "8443"]
  }
  allow {
    protocol = "tcp"
    ports    = ["8443"]
  }
}

# Inside, nothing is in the way of the fabric and of direct paths. From outside no port is open.
resource "google_compute_firewall" "inside" {
  name          = "${var.name}-inside"
  network       = google_compute_network.this.id
  source_ranges = [var.cidr]
  allow {
    protocol = "all"
  }
}

resource "google_compute_router" "this" {
  name    = var.name
  network = google_compute_network.this.id
  region  = var.region
}

# The way out for nodes, which have no public address. Its UDP mappings end after 30 s without a
# packet, and Weft's keepalive to the hub is shorter.
resource "google_compute_router_nat" "this" {
  name                                = var.name
  router                              = google_compute_router.this.name
  region                              = var.region
  nat_ip_allocate_option              = "AUTO_ONLY"
  source_subnetwork_ip_ranges_to_nat  = "ALL_SUBNETWORKS_ALL_IP_RANGES"
  enable_endpoint_independent_mapping = true
}

# ---- the token's way from the hub to the nodes --------------------------------------------------

resource "google_secret_manager_secret" "token" {
  secret_id = "${var.name}-join-token"
  replication {
    auto {}
  }
}

resource "google_service_account" "hub" {
  account_id = "${var.name}-hub"
}

resource "google_service_account" "nodes" {
  account_id = "${var.name}-nodes"
}

resource "google_secret_manager_secret_iam_member" "hub" {
  secret_id = google_secret_manager_secret.token.id
  role      = "roles/secretmanager.secretVersionAdder"
  member    = "serviceAccount:${google_service_account.hub.email}"
}

resource "google_secret_manager_secret_iam_member" "nodes" {
  secret_id = google_secret_manager_secret.token.id
  role      = "roles/secretmanager.secretAccessor"
  member    = "serviceAccount:${google_service_account.nodes.email}"
}

locals {
  install = {
    archive_url    = var.archive_url
    archive_sha256 = var.archive_sha256
  }
}

# ---- machines -----------------------------------------------------------------------------------

resource "google_compute_address" "hub" {
  name   = "${var.name}-hub"
  region = var.region
}

resource "google_compute_instance" "hub" {
  name         = "${var.name}-hub"
  zone         = var.zone
  machine_type = var.hub_machine_type
  tags         = ["${var.name}-hub"]
  boot_disk {
    initialize_params {
      image = var.hub_image
    }
  }
  network_interface {
    subnetwork = google_compute_subnetwork.this.id
    nic_type   = "GVNIC"
    access_config {
      nat_ip = google_compute_address.hub.address
    }
  }
  service_account {
    email  = google_service_account.hub.email
    scopes = ["cloud-platform"]
  }
  metadata = {
    user-data = templatefile("${path.module}/hub.yaml", merge(local.install, {
      public  = google_compute_address.hub.address
      network = var.network
      uses    = var.node_count
      secret  = google_secret_manager_secret.token.secret_id
    }))
  }
}

resource "google_compute_resource_policy" "near" {
  name   = var.name
  region = var.region
  group_placement_policy {
    collocation = "COLLOCATED"
    vm_count    = var.node_count
  }
}

resource "google_compute_instance" "node" {
  count             = var.node_count
  name              = "${var.name}-${count.index}"
  zone              = var.zone
  machine_type      = var.node_machine_type
  resource_policies = [google_compute_resource_policy.near.id]
  boot_disk {
    initialize_params {
      image = var.node_image
      size  = var.node_disk_gb
    }
  }
  network_interface {
    subnetwork = google_compute_subnetwork.this.id
    nic_type   = "GVNIC"
  }
  network_performance_config {
    total_egress_bandwidth_tier = var.egress_tier
  }
  scheduling {
    # Machines with GPUs, and those that are placed together, are not moved while they run.
    on_host_maintenance = "TERMINATE"
    automatic_restart   = true
  }
  service_account {
    email  = google_service_account.nodes.email
    scopes = ["cloud-platform"]
  }
  metadata = {
    user-data = templatefile("${path.module}/node.yaml", merge(local.install, {
      name   = "${var.name}-${count.index}"
      secret = google_secret_manager_secret.token.secret_id
    }))
  }
  depends_on = [google_compute_router_nat.this]
}
