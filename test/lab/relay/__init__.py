"""What goes through a hub or another relay, as UDP or inside TLS."""
