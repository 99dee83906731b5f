"""One machine as a member: joining, what it keeps doing, what changes around it, leaving."""
