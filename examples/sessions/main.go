// Sessions keeps the sessions of a web server: each is a hash that expires when it has not been used for a while.
//
// A request prolongs its session in the same commit in which it reads it, so a session cannot expire between the two.
package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/stavedb/stave/db"
)

const idle = 30 * time.Minute // after which a session ends

// key is the key of a session.
func key(token string) string { return "session:" + token }

// signIn makes a session and returns its token.
func signIn(store *db.Store, user string) (token string, err error) {
	token = rand.Text()
	err = store.UpdateKeys([]string{key(token)}, func(tx *db.Tx) error {
		if _, err := tx.Hash(key(token)).Put("user", []byte(user)); err != nil {
			return err
		}
		_, err := tx.Key(key(token)).Expire(idle)
		return err
	})
	return token, err
}

// use returns the user of a session and prolongs it. It fails with db.ErrNotFound once the session has ended.
func use(store *db.Store, token string) (user string, err error) {
	err = store.UpdateKeys([]string{key(token)}, func(tx *db.Tx) error {
		value, err := tx.Hash(key(token)).Get("user")
		if err != nil {
			return err
		}
		user = string(value)
		_, err = tx.Key(key(token)).Expire(idle)
		return err
	})
	return user, err
}

// signOut ends a session, and reports whether there was one.
func signOut(store *db.Store, token string) (bool, error) { return store.Key(key(token)).Delete() }

func run(store *db.Store) error {
	token, err := signIn(store, "ada")
	if err != nil {
		return err
	}
	user, err := use(store, token)
	if err != nil {
		return err
	}
	fmt.Println("signed in:", user)
	if _, err := signOut(store, token); err != nil {
		return err
	}
	_, err = use(store, token)
	fmt.Println("signed out:", errors.Is(err, db.ErrNotFound))
	return nil
}

func main() {
	store, err := db.OpenMemory(nil) // db.Open("sessions", nil) keeps the sessions.
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(run(store), store.Close()); err != nil {
		log.Fatal(err)
	}
}
