// Queue is a work queue whose jobs survive a crash of their worker.
//
// A worker moves a job from the list of waiting jobs to its own list in one commit, and deletes it when the work is
// done. A job of a worker that died is still in that worker's list, and recover puts it back. So each job is done at
// least once.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/stavedb/stave/db"
)

const (
	waiting = "jobs"
	taken   = "jobs:taken:" // and the worker's name
)

// take waits for a job and makes it worker's.
func take(ctx context.Context, store *db.Store, worker string) ([]byte, error) {
	return store.List(waiting).MoveWait(ctx, taken+worker, db.Front, db.Back)
}

// done deletes a job that worker has finished.
func done(store *db.Store, worker string, job []byte) error {
	_, err := store.List(taken+worker).Remove(1, job)
	return err
}

// recoverJobs puts the jobs of a worker that died back to the front of the queue, in their old order.
func recoverJobs(store *db.Store, worker string) (n int, err error) {
	err = store.UpdateKeys([]string{waiting, taken + worker}, func(tx *db.Tx) error {
		for n = 0; ; n++ {
			_, err := tx.List(taken+worker).Move(waiting, db.Back, db.Front)
			if errors.Is(err, db.ErrNotFound) {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
	return n, err
}

func run(ctx context.Context, store *db.Store) error {
	if _, err := store.List(waiting).PushBack([]byte("resize a.png"), []byte("resize b.png")); err != nil {
		return err
	}
	job, err := take(ctx, store, "ann")
	if err != nil {
		return err
	}
	fmt.Printf("ann takes %q and dies\n", job)
	n, err := recoverJobs(store, "ann")
	if err != nil {
		return err
	}
	fmt.Println("recovered:", n)
	for i := 0; i < 2 && err == nil; i++ {
		if job, err = take(ctx, store, "bob"); err == nil {
			fmt.Printf("bob does %q\n", job)
			err = done(store, "bob", job)
		}
	}
	return err
}

func main() {
	store, err := db.OpenMemory(nil) // db.Open("queue", nil) keeps the jobs.
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(run(context.Background(), store), store.Close()); err != nil {
		log.Fatal(err)
	}
}
