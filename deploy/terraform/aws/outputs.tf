output "hub" {
  description = "The hub's public address."
  value       = aws_eip.hub.public_ip
}

output "nodes" {
  description = "The nodes' private addresses, by their names."
  value       = { for node in aws_instance.node : node.tags["Name"] => node.private_ip }
}
