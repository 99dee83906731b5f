output "hub" {
  description = "The hub's public address."
  value       = google_compute_address.hub.address
}

output "nodes" {
  description = "The nodes' private addresses, by their names."
  value       = { for node in google_compute_instance.node : node.name => node.network_interface[0].network_ip }
}
