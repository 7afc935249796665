// Package archtest holds no code but the project's import policy, as a test:
// who may import whom, and why not.
package archtest
