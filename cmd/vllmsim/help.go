package main

// long is what --help says above the flags.
const long = `Serves simulated vLLM servers, to try routers and clients without a GPU.

Each server has its own engine, KV cache and metrics, and with
--data-parallel-size several engines behind vLLM's internal balancer. Once all
listen, one line for each goes to standard output.

FAULTS

--faults names a list of what goes wrong, in YAML or JSON:

    - {kind: status, status: 503, message: loading, for: 30s}
    - {kind: close_stream, tokens: 10, after_requests: 100, count: 5}
    - {kind: hang, share: 0.01, servers: [0]}
    - {kind: metrics, status: 404, body: "", at: 1m}
    - {kind: restart, at: 90s, for: 10s}

Members of every fault:
    kind            one of those below
    servers         which it concerns, from 0; all if left out
    at, for         when it sets in, since it was added, and how long it lasts;
                    times of the wall clock; at once and for ever if left out
Of those that hit requests or scrapes also:
    after_requests  how many pass before it sets in
    count           how many it hits; all if left out
    share           the part of them that it hits, above 0 and at most 1

Kinds that hit requests to generate:
    status          answered with status (500), and header, message or body
    close           connection closed, the body unread
    close_body      connection closed after half of the body
    hang            taken in and never answered
    delay           looked at after delay: headers come late
    close_stream    connection closed after tokens (0)
    stream_error    error inside a 200 stream after tokens (0), with message
    no_done         a stream ends without [DONE]
Kinds that hit /metrics:
    metrics         body, status (200), header, delay and cut instead of the page:
                    404 for a missing page, a body for any other; cut closes the
                    connection before the end
    metrics_frozen  the page stays as it was
Kinds that hit the server:
    slow            steps take longer by factor
    pause           the engine stands still, and /health answers
    sleep           as /sleep does, with level (0)
    restart         connections are cut, the port is shut for "for", and caches
                    and counters are empty
    refuse          connections are cut and refused; the engine remembers

An unknown word is refused with its line. With --admin ADDR the faults can be
changed while servers run, at a port of their own:

    curl ADDR/faults                                   lists them
    curl ADDR/faults -d '[{kind: hang, count: 3}]'     adds some
    curl ADDR/faults/2 -X DELETE                       removes one
    curl ADDR/faults -X DELETE                         removes all
`
