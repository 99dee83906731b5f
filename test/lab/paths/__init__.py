"""How two nodes reach each other: NATs, roaming, MTU, keepalives."""
