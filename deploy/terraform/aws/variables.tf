variable "name" {
  description = "What all of it is called, and the nodes before their numbers: a-z, 0-9 and -."
  type        = string
  default     = "train"
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,40}$", var.name))
    error_message = "name is of a-z, 0-9 and -, begins with a letter, and has at most 41 characters."
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

variable "region" {
  description = "As us-east-1."
  type        = string
}

variable "subnet_id" {
  description = "One subnet for hub and nodes; with a way out to the internet, for the nodes by a NAT gateway."
  type        = string
}

variable "route_table_ids" {
  description = "The route tables that lead to S3's gateway endpoint: that of the subnet."
  type        = list(string)
}

variable "hub_ami" {
  description = "An image with cloud-init, apt and the AWS CLI, as Ubuntu's or Debian's."
  type        = string
}

variable "hub_instance_type" {
  type    = string
  default = "c7i.large"
}

variable "node_ami" {
  description = "As hub_ami, with the GPU's and EFA's drivers: a Deep Learning AMI."
  type        = string
}

variable "node_instance_type" {
  type    = string
  default = "p5.48xlarge"
}

variable "node_count" {
  type    = number
  default = 2
}

variable "efa_devices" {
  description = "Network cards of the type that take EFA: 32 for p5.48xlarge, 4 for p4d.24xlarge."
  type        = number
  default     = 32
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
