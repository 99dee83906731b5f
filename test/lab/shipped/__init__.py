"""What people get besides the program: pages, recipes, an image, an archive."""
