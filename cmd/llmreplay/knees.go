package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/cluster"
	"github.com/caddyllm/caddy-llm-prefix/cmd/internal/workload"
	"github.com/caddyllm/caddy-llm-prefix/simengine"
)

// kneeSeed is that of the workload whose knee is searched: all seeds of a
// workload share it.
const kneeSeed = 1

// kneeVersion is raised when what engines or generators do changes so much that
// remembered knees are wrong.
const kneeVersion = 1

// kneeKey is what a knee depends on.
type kneeKey struct {
	Version, Replicas, Requests int
	Workload                    string
	Size                        int64 // of the file
	Engine                      simengine.Config
}

// knees remembers them in the user's cache folder.
type knees struct {
	file string
	byID map[string]float64
}

// openKnees reads what is remembered; without a cache folder nothing is.
func openKnees() *knees {
	k := &knees{byID: make(map[string]float64)}
	if dir, err := os.UserCacheDir(); err == nil {
		k.file = filepath.Join(dir, "caddy-llm-prefix", "knees.json")
	}
	if data, err := os.ReadFile(k.file); err == nil {
		_ = json.Unmarshal(data, &k.byID) // a broken file is searched anew
	}
	return k
}

// find returns the knee of a workload, in requests a second.
func (k *knees) find(ctx context.Context, trace string, requests int, c cluster.Config) (float64, error) {
	key := kneeKey{Version: kneeVersion, Replicas: c.Replicas, Requests: requests, Workload: trace, Engine: c.Engine}
	if info, err := os.Stat(trace); err == nil {
		key.Workload, key.Size = filepath.Base(trace), info.Size()
	}
	text, err := json.Marshal(key)
	if err != nil {
		return 0, err
	}
	sum := sha256.Sum256(text)
	id := hex.EncodeToString(sum[:16])
	if rate, ok := k.byID[id]; ok {
		return rate, nil
	}
	rate, err := cluster.Knee(ctx, func(rate float64) (*workload.Workload, error) {
		return workload.Open(trace, workload.Options{Requests: requests, Rate: rate, Seed: kneeSeed})
	}, c)
	if err != nil {
		return 0, err
	}
	k.byID[id] = rate
	return rate, k.write()
}

func (k *knees) write() error {
	if k.file == "" {
		return nil
	}
	data, err := json.MarshalIndent(k.byID, "", "  ")
	if err != nil {
		return err
	}
	err = os.MkdirAll(filepath.Dir(k.file), 0o755)
	if err == nil {
		err = os.WriteFile(k.file, data, 0o644)
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil // then it is searched again next time
	}
	if err != nil {
		return fmt.Errorf("remembering the knee: %w", err)
	}
	return nil
}
