variable "name" {
  description = "What all of it is called, and the nodes before their numbers: a-z, 0-9 and -."
  type        = string
  default     = "train"
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{2,22}$", var.name))
    error_message = "name is of a-z, 0-9 and -, begins with a letter, and has 3 to 23 characters."
  }
}

variable "network" {
  description = "The name of the Weft network."
  type        = string
  default     = "default"
  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", var.network))
    error_message = "network is of a-z, 0-9 and - (not at an end), and has at most 63 characters."
  }
}

variable "project" {
  type = string
}

variable "region" {
  description = "As us-central1."
  type        = string
}

variable "zone" {
  description = "One zone, or nothing is near: us-central1-a."
  type        = string
}

variable "cidr" {
  description = "Private addresses of the machines; not inside the overlay's 10.77.0.0/16."
  type        = string
  default     = "10.140.0.0/20"
}

variable "hub_image" {
  description = "An image with cloud-init and the Google Cloud CLI: Debian's of Google has no cloud-init, Ubuntu's has."
  type        = string
  default     = "ubuntu-os-cloud/ubuntu-2404-lts-amd64"
}

variable "hub_machine_type" {
  type    = string
  default = "c3-standard-4"
}

variable "node_image" {
  description = "As hub_image, with the GPU's driver."
  type        = string
}

variable "node_machine_type" {
  type    = string
  default = "a3-highgpu-8g"
}

variable "node_disk_gb" {
  type    = number
  default = 200
}

variable "node_count" {
  type    = number
  default = 2
}

variable "egress_tier" {
  description = "TIER_1 where the machine type has it, else DEFAULT."
  type        = string
  default     = "DEFAULT"
}

variable "archive_url" {
  description = "Where weft's portable archive (make portable) is to be had, by https."
  type        = string
  validation {
    condition     = can(regex("^https://[^' ]+$", var.archive_url))
    error_message = "archive_url begins with https://, and has no blank and no quote."
  }
}

variable "archive_sha256" {
  description = "Its SHA-256, in hex."
  type        = string
  validation {
    condition     = can(regex("^[0-9a-f]{64}$", var.archive_sha256))
    error_message = "archive_sha256 is 64 digits of hex."
  }
}
