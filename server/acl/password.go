package acl

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// The hash that is kept of a password is bcrypt of the 64 hexadecimal digits of its SHA-256: below the 72 bytes that
// bcrypt reads, whatever the password's length, and of something that Redis's rule #<sha256> gives too. Bcrypt needs 4
// KiB of memory, so a client that has not authenticated cannot make the server use more; argon2id would need megabytes
// for each attempt.

const (
	bcryptCost   = 10              // 2^10 rounds, some 50 ms of a processor
	maxPasswords = 64              // of one user: a wrong one is compared with each
	waitForTurn  = 5 * time.Second // for the slow hashes of others
)

// secret is one password of a user.
type secret struct {
	hash string // bcrypt's text
	// known is the keyed hash of the SHA-256, once the password has been seen or verified.
	known atomic.Pointer[[sha256.Size]byte]
}

// passwords computes hashes for one list of users.
type passwords struct {
	cost int
	key  [32]byte      // of the keyed hashes; random, and only in RAM
	turn chan struct{} // holds a token while a slow hash is computed
}

func newPasswords(cost int) *passwords {
	p := &passwords{cost: cost, turn: make(chan struct{}, 1)}
	_, _ = rand.Read(p.key[:]) // never fails: crypto/rand ends the process instead
	return p
}

// digest is the SHA-256 of a password in lower-case hexadecimal digits.
func digest(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}

// isDigest says whether text has the form of a digest.
func isDigest(text string) bool {
	return len(text) == 2*sha256.Size && strings.Trim(text, "0123456789abcdef") == ""
}

// slow computes bcrypt's text of a digest. Bcrypt fails only for a cost out of bounds and for more than 72 bytes.
func (p *passwords) slow(digest string) string {
	hash, err := bcrypt.GenerateFromPassword([]byte(digest), p.cost)
	if err != nil {
		panic(fmt.Sprintf("BUG: acl: bcrypt: %v", err))
	}
	return string(hash)
}

// keyed is the hash by which a password is recognized that has been verified.
func (p *passwords) keyed(digest string) (sum [sha256.Size]byte) {
	h := hmac.New(sha256.New, p.key[:])
	h.Write([]byte(digest))
	h.Sum(sum[:0])
	return sum
}

// ofRule checks the rule of a password (>password, #hash and their inverses) and returns a function that makes it a
// secret, which may take long.
func (p *passwords) ofRule(rule string) (make func() *secret, err error) {
	text := rule[1:]
	switch {
	case rule[0] == '>' || rule[0] == '<':
		text = digest(text)
	case !isDigest(text):
		// The slowest hash that is accepted must not take longer than a client waits.
		if cost, err := bcrypt.Cost([]byte(text)); err != nil || cost > bcryptCost+4 || hasBlank(text) || len(text) != 60 {
			return nil, errHashSyntax
		}
		return func() *secret { return &secret{hash: text} }, nil
	}
	return func() *secret {
		s := &secret{hash: p.slow(text)}
		sum := p.keyed(text)
		s.known.Store(&sum)
		return s
	}, nil
}

// find returns the index of the password that a rule names, -1 if there is none. The rule has been checked.
func (p *passwords) find(list []*secret, rule string) int {
	text := rule[1:]
	if rule[0] == '>' || rule[0] == '<' {
		text = digest(text)
	}
	for i, s := range list {
		if s.hash == text || isDigest(text) && (p.recognizes(s, text) || s.known.Load() == nil && p.verify(s, text)) {
			return i
		}
	}
	return -1
}

// recognizes compares with the keyed hash, if there is one, in constant time.
func (p *passwords) recognizes(s *secret, digest string) bool {
	known := s.known.Load()
	if known == nil {
		return false
	}
	sum := p.keyed(digest)
	return subtle.ConstantTimeCompare(known[:], sum[:]) == 1
}

// verify compares with the slow hash, and keeps the keyed one if they agree.
func (p *passwords) verify(s *secret, digest string) bool {
	if bcrypt.CompareHashAndPassword([]byte(s.hash), []byte(digest)) != nil {
		return false
	}
	sum := p.keyed(digest)
	s.known.Store(&sum)
	return true
}

// ErrBusy is returned when so many passwords are being verified that one more would have to wait for long.
var ErrBusy = errors.New("too many passwords are being verified; try again later")

// check says whether a password is one of several. A password that has not been recognized costs one slow hash at
// least, also if there are no secrets: how long the answer takes does not say whether there is such a user. It waits
// for its turn, unless ctx ends.
func (p *passwords) check(ctx context.Context, list []*secret, password string) (bool, error) {
	text := digest(password)
	for _, s := range list {
		if p.recognizes(s, text) {
			return true, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, waitForTurn)
	defer cancel()
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return false, ErrBusy
	}
	compared := false
	for _, s := range list {
		if s.known.Load() != nil {
			continue // it is known, and it is another one
		}
		compared = true
		if p.verify(s, text) {
			return true, nil
		}
	}
	if !compared {
		p.slow(text) // for the time that it takes, which is that of comparing
	}
	return false, nil
}
