# The main job of Sidekiq against a server: frameworks.rb PORT PHASE. See frameworks.mjs. Within `sidekiq -r` it only has the worker.
begin
  require "sidekiq"
  require "sidekiq/api"
  require "sidekiq/scheduled"
rescue LoadError
  warn "left out: sidekiq"
  exit 0
end

port = ENV["FRAMEWORKS_PORT"] || ARGV[0]
Sidekiq.configure_server { |c| c.redis = { url: "redis://127.0.0.1:#{port}/0" } }
Sidekiq.configure_client { |c| c.redis = { url: "redis://127.0.0.1:#{port}/0" } }

class Work
  include Sidekiq::Worker
  sidekiq_options retry: 3
  sidekiq_retry_in { 1 }

  def perform(n)
    if n == 0 && Sidekiq.redis { |r| r.incr("sidekiq:tries") } == 1
      raise "once"
    end
    Sidekiq.redis { |r| r.rpush("sidekiq:seen", n) }
  end
end

JOBS = 50

def report(job, result)
  puts ["sidekiq", Sidekiq::VERSION, job, result].join("\t")
  exit(result == "ok" ? 0 : 1)
end

case ENV["FRAMEWORKS_PORT"] ? nil : ARGV[1]
when "before"
  JOBS.times { |i| Work.perform_async(i) }
  Work.perform_in(1, JOBS)
  report "enqueue, schedule, then a restart", "ok"
when "after"
  worker = spawn({ "FRAMEWORKS_PORT" => port }, "sidekiq", "-r", File.expand_path(__FILE__), "-c", "4", out: File::NULL, err: File::NULL)
  seen = []
  begin
    deadline = Time.now + 90
    until seen.length > JOBS || Time.now > deadline
      sleep 0.5
      seen = Sidekiq.redis { |r| r.lrange("sidekiq:seen", 0, -1) }.map(&:to_i)
    end
    stats = Sidekiq::Stats.new
    processed, failed = stats.processed, stats.failed
  ensure
    Process.kill("TERM", worker)
    Process.wait(worker)
  end
  fine = seen.sort == (0..JOBS).to_a && failed == 1
  report "work after the restart: process, retry, schedule, statistics", fine ? "ok" : "#{seen.length} jobs, #{processed} processed, #{failed} failed"
end
