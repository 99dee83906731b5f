"""How a lab is made: from a topology file to namespaces, links, NATs, and what runs in them."""
