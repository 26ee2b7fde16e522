// Leaderboard keeps the points of players and shows who leads, who is near a player, and a player's rank.
//
// All of it is one sorted set. Ranks and ranges cost O(log n), so a board of a million players is as quick as one of
// ten.
package main

import (
	"errors"
	"fmt"
	"log"

	"github.com/stavedb/stave/db"
)

const board = "board"

// win adds points to a player and returns the new sum.
func win(store *db.Store, player string, points float64) (float64, error) {
	return store.SortedSet(board).Incr(player, points)
}

// leaders returns the n players with the most points, the best first.
func leaders(store *db.Store, n int) ([]db.Scored, error) {
	return store.SortedSet(board).Range(db.Top(n))
}

// around returns a player's rank, from 1, and the neighbours, as they are at one moment.
func around(store *db.Store, player string, each int64) (rank int64, players []db.Scored, err error) {
	err = store.View(func(tx *db.Tx) error {
		above, err := tx.SortedSet(board).RevRank(player)
		if err != nil {
			return err
		}
		rank = int64(above) + 1
		first := max(int64(above)-each, 0)
		players, err = tx.SortedSet(board).Range(db.RankRange{Start: first, Stop: int64(above) + each, Reverse: true})
		return err
	})
	return rank, players, err
}

func run(store *db.Store) error {
	for player, points := range map[string]float64{"Ada": 120, "Bob": 80, "Cy": 95, "Di": 60} {
		if _, err := win(store, player, points); err != nil {
			return err
		}
	}
	if _, err := win(store, "Di", 30); err != nil {
		return err
	}
	best, err := leaders(store, 2)
	if err != nil {
		return err
	}
	fmt.Println("leaders:", best)
	rank, near, err := around(store, "Di", 1)
	if err != nil {
		return err
	}
	fmt.Println("Di is number", rank, "of", near)
	return nil
}

func main() {
	store, err := db.OpenMemory(nil) // db.Open("board", nil) keeps the points.
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(run(store), store.Close()); err != nil {
		log.Fatal(err)
	}
}
