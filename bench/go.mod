// The benchmarks are a module of their own, so that users of the plugin don't
// inherit the libraries that it is compared with. Its path lies below caddyllm
// because only what does may import caddyllm's internal packages.
module github.com/caddyllm/caddy-llm-prefix/caddyllm/bench

go 1.26.0

replace github.com/caddyllm/caddy-llm-prefix => ../

require (
	github.com/bytedance/sonic v1.15.5
	github.com/caddyllm/caddy-llm-prefix v0.0.0
	github.com/tidwall/gjson v1.20.0
	github.com/valyala/fastjson v1.6.10
)

require (
	github.com/bytedance/gopkg v0.1.3 // indirect
	github.com/bytedance/sonic/loader v0.5.3 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/cloudwego/base64x v0.1.6 // indirect
	github.com/klauspost/cpuid/v2 v2.4.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/twitchyliquid64/golang-asm v0.15.1 // indirect
	golang.org/x/arch v0.0.0-20210923205945-b76863e36670 // indirect
	golang.org/x/sys v0.48.0
)
