package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"
)

const topic = "watermill"

// subscribe gives handle the messages of the topic, as a consumer of a group, until it wants no more.
func subscribe(consumer string, handle func(*message.Message) (more bool)) error {
	c := client()
	defer c.Close()
	s, err := redisstream.NewSubscriber(redisstream.SubscriberConfig{
		Client: c, Consumer: consumer, ConsumerGroup: "group", OldestId: "0", DisableIndefiniteInitialBlock: true,
		ClaimInterval: 200 * time.Millisecond, MaxIdleTime: 500 * time.Millisecond,
	}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	messages, err := s.Subscribe(ctx, topic)
	if err != nil {
		return err
	}
	for {
		select {
		case m, ok := <-messages:
			if !ok {
				return fmt.Errorf("the subscription of %s ended", consumer)
			}
			if !handle(m) {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watermillBefore publishes, acknowledges some messages, and leaves one that was delivered and not acknowledged.
func watermillBefore() error {
	c := client()
	defer c.Close()
	p, err := redisstream.NewPublisher(redisstream.PublisherConfig{Client: c}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	defer p.Close()
	for i := range jobs {
		if err := p.Publish(topic, message.NewMessage(fmt.Sprint(i), []byte{byte(i)})); err != nil {
			return err
		}
	}
	seen := 0
	return subscribe("before", func(m *message.Message) bool {
		if seen++; seen == jobs/5 {
			return false // its consumer is no more
		}
		m.Ack()
		return true
	})
}

// watermillAfter gets the rest, what is new and what another consumer left, until everything is acknowledged.
func watermillAfter() error {
	c := client()
	defer c.Close()
	seen := map[byte]bool{}
	nacked := false
	err := subscribe("after", func(m *message.Message) bool {
		if !nacked {
			nacked = true
			m.Nack() // it comes again
			return true
		}
		seen[m.Payload[0]] = true
		m.Ack()
		return len(seen) < jobs-jobs/5+1 || pending(c) > 0
	})
	if err != nil {
		return fmt.Errorf("%d different messages, %d pending: %w", len(seen), pending(c), err)
	}
	return nil
}

// pending is how many messages are not acknowledged, once the acknowledgements that are on their way have come.
func pending(c *redis.Client) int64 {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		p, err := c.XPending(ctx, topic, "group").Result()
		if err != nil {
			return -1
		}
		if p.Count == 0 || time.Since(began) > 5*time.Second {
			return p.Count
		}
	}
}
