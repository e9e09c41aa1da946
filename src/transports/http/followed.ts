/** A reader that came back here for the answer to a call that another process runs. */
import { eventText } from './event.ts'
import { eventId, pastAll } from './event-ids.ts'
import type { Foreign } from './log-follower.ts'
import type { Outlet } from './outlet.ts'
import { Reader, type ReaderOwner } from './reader.ts'
import type { Streams } from './streams.ts'

export class Followed implements ReaderOwner {
  /** When this process stops, its reader finds the answer elsewhere. */
  readonly listening = true
  readonly #stop: () => void

  constructor(streams: Streams, outlet: Outlet, { stream, number, will, follow }: Foreign) {
    const reader = new Reader(streams, outlet, this)
    let last = number
    this.#stop = follow({
      event: event => {
        last = event.number
        reader.write(eventText(event.frame, eventId(stream, last)), true)
      },
      // Told once: whoever comes back after it has had it.
      over: how => reader.end(how === 'gone' && last !== pastAll ? words(stream, will) : undefined),
      failed: () => reader.cut(),
    })
  }

  readerGone(): void {
    this.#stop()
  }
}

function words(stream: string, will: string | undefined): string | undefined {
  return will === undefined ? undefined : eventText(will, eventId(stream, pastAll))
}
