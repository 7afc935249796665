// Command caddy is Caddy with its standard modules and this project's.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/caddyllm/caddy-llm-prefix/caddyllm"
)

func main() {
	caddycmd.Main()
}
