// Package caches has exact caches by algorithms of the literature, and kinds of requests to compare others with them.
package caches

import "container/list"

// Cache is a cache of so many keys by a textbook's algorithm, in a list: the oldest key is at its back. It is for one goroutine.
type Cache struct {
	most  int
	order *list.List // of int
	keys  map[int]*list.Element
	used  map[int]bool
	hand  *list.Element // of SIEVE
	evict func(c *Cache) int
	touch func(c *Cache, key int)
}

func newCache(most int, touch func(*Cache, int), evict func(*Cache) int) *Cache {
	return &Cache{most: most, order: list.New(), keys: map[int]*list.Element{}, used: map[int]bool{}, touch: touch, evict: evict}
}

// Get asks for a key, reports whether it is there, and has it from then on.
func (c *Cache) Get(key int) (hit bool) {
	if c.keys[key] != nil {
		c.touch(c, key)
		return true
	}
	if c.order.Len() == c.most {
		gone := c.evict(c)
		c.order.Remove(c.keys[gone])
		delete(c.keys, gone)
	}
	c.keys[key] = c.order.PushFront(key)
	return false
}

// NewLRU evicts the key that has been used least recently.
func NewLRU(most int) *Cache {
	return newCache(most, func(c *Cache, key int) { c.order.MoveToFront(c.keys[key]) }, func(c *Cache) int { return c.order.Back().Value.(int) })
}

// NewClock gives a second chance: what was used goes to the front, once.
func NewClock(most int) *Cache {
	return newCache(most, func(c *Cache, key int) { c.used[key] = true }, func(c *Cache) int {
		for {
			key := c.order.Back().Value.(int)
			if !c.used[key] {
				return key
			}
			delete(c.used, key)
			c.order.MoveToFront(c.order.Back())
		}
	})
}

// NewSieve is SIEVE (Zhang et al., NSDI 2024): what was used stays where it is.
func NewSieve(most int) *Cache {
	return newCache(most, func(c *Cache, key int) { c.used[key] = true }, func(c *Cache) int {
		at := c.hand
		for {
			if at == nil {
				at = c.order.Back()
			}
			key := at.Value.(int)
			if !c.used[key] {
				c.hand = at.Prev()
				return key
			}
			delete(c.used, key)
			at = at.Prev()
		}
	})
}
