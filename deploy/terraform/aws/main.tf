# GPU machines with EFA in one placement group, and the hub of their Weft network, in a subnet that
# is there. docs/recipes/terraform.md says how it is used, and how machines elsewhere join.

terraform {
  required_version = ">= 1.3"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.0"
    }
  }
}

provider "aws" {
  region = var.region
}

data "aws_subnet" "this" {
  id = var.subnet_id
}

# ---- who may speak to whom ----------------------------------------------------------------------

resource "aws_security_group" "hub" {
  name        = "${var.name}-hub"
  description = "Weft hub: WireGuard, relay and API"
  vpc_id      = data.aws_subnet.this.vpc_id
}

resource "aws_vpc_security_group_ingress_rule" "hub_udp" {
  security_group_id = aws_security_group.hub.id
  description       = "WireGuard, relay, STUN"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "udp"
  from_port         = 51820
  to_port           = 51820
}

resource "aws_vpc_security_group_ingress_rule" "hub_api" {
  security_group_id = aws_security_group.hub.id
  description       = "joining; nodes whose UDP is blocked"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = 8443
  to_port           = 8443
}

# From two ports a node learns what kind of NAT it is behind.
resource "aws_vpc_security_group_ingress_rule" "hub_stun" {
  security_group_id = aws_security_group.hub.id
  description       = "STUN from a second port"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "udp"
  from_port         = 8443
  to_port           = 8443
}

resource "aws_vpc_security_group_egress_rule" "hub" {
  security_group_id = aws_security_group.hub.id
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"
}

# EFA wants a group that lets all of itself in and out. Weft needs no port open from outside.
resource "aws_security_group" "nodes" {
  name        = "${var.name}-nodes"
  description = "EFA inside the placement group"
  vpc_id      = data.aws_subnet.this.vpc_id
}

resource "aws_vpc_security_group_ingress_rule" "nodes_self" {
  security_group_id            = aws_security_group.nodes.id
  referenced_security_group_id = aws_security_group.nodes.id
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_egress_rule" "nodes_self" {
  security_group_id            = aws_security_group.nodes.id
  referenced_security_group_id = aws_security_group.nodes.id
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_egress_rule" "nodes_out" {
  security_group_id = aws_security_group.nodes.id
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"
}

# ---- what is near and what is free of charge ----------------------------------------------------

resource "aws_placement_group" "this" {
  name     = var.name
  strategy = "cluster"
}

# Data sets and checkpoints reach S3 without a NAT gateway, which charges by the gigabyte.
resource "aws_vpc_endpoint" "s3" {
  vpc_id            = data.aws_subnet.this.vpc_id
  service_name      = "com.amazonaws.${var.region}.s3"
  vpc_endpoint_type = "Gateway"
  route_table_ids   = var.route_table_ids
}

# ---- the token's way from the hub to the nodes --------------------------------------------------

locals {
  token_parameter = "/${var.name}/join-token"
  token_arn       = "arn:aws:ssm:${var.region}:${data.aws_caller_identity.this.account_id}:parameter${local.token_parameter}"
  install = {
    archive_url    = var.archive_url
    archive_sha256 = var.archive_sha256
  }
}

data "aws_caller_identity" "this" {}

resource "aws_iam_role" "this" {
  for_each = { hub = "ssm:PutParameter", nodes = "ssm:GetParameter" }
  name     = "${var.name}-${each.key}"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ec2.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "this" {
  for_each = { hub = "ssm:PutParameter", nodes = "ssm:GetParameter" }
  name     = "join-token"
  role     = aws_iam_role.this[each.key].id
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = each.value, Resource = local.token_arn }]
  })
}

resource "aws_iam_instance_profile" "this" {
  for_each = { hub = "", nodes = "" }
  name     = "${var.name}-${each.key}"
  role     = aws_iam_role.this[each.key].name
}

# ---- machines -----------------------------------------------------------------------------------

# Before the machine, whose hub has to know it.
resource "aws_eip" "hub" {
  domain = "vpc"
}

resource "aws_eip_association" "hub" {
  allocation_id = aws_eip.hub.id
  instance_id   = aws_instance.hub.id
}

resource "aws_instance" "hub" {
  ami                    = var.hub_ami
  instance_type          = var.hub_instance_type
  subnet_id              = var.subnet_id
  vpc_security_group_ids = [aws_security_group.hub.id]
  iam_instance_profile   = aws_iam_instance_profile.this["hub"].name
  user_data = templatefile("${path.module}/hub.yaml", merge(local.install, {
    public    = aws_eip.hub.public_ip
    network   = var.network
    uses      = var.node_count
    region    = var.region
    parameter = local.token_parameter
  }))
  metadata_options {
    http_tokens = "required"
  }
  root_block_device {
    encrypted = true
  }
  tags = { Name = "${var.name}-hub" }
}

resource "aws_launch_template" "node" {
  name_prefix   = "${var.name}-"
  image_id      = var.node_ami
  instance_type = var.node_instance_type
  iam_instance_profile {
    name = aws_iam_instance_profile.this["nodes"].name
  }
  placement {
    group_name = aws_placement_group.this.name
  }
  # One EFA device a network card; the first of all is device 0, the others are 1 on their cards.
  dynamic "network_interfaces" {
    for_each = range(var.efa_devices)
    content {
      network_card_index    = network_interfaces.value
      device_index          = network_interfaces.value == 0 ? 0 : 1
      interface_type        = "efa"
      subnet_id             = var.subnet_id
      security_groups       = [aws_security_group.nodes.id]
      delete_on_termination = true
    }
  }
  metadata_options {
    http_tokens = "required"
  }
}

resource "aws_instance" "node" {
  count = var.node_count
  launch_template {
    id      = aws_launch_template.node.id
    version = aws_launch_template.node.latest_version
  }
  user_data = templatefile("${path.module}/node.yaml", merge(local.install, {
    name      = "${var.name}-${count.index}"
    region    = var.region
    parameter = local.token_parameter
  }))
  tags       = { Name = "${var.name}-${count.index}" }
  depends_on = [aws_vpc_endpoint.s3, aws_vpc_security_group_egress_rule.nodes_out]
}
