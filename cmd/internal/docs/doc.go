// Package docs holds no code but tests: what README and docs name is there,
// and every Caddyfile in them is one that Caddy takes.
package docs
