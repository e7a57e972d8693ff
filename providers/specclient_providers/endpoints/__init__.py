"""One module an endpoint, most of them just rows. The module name is the provider name."""
