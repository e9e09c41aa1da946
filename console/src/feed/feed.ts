/**
 * News of the process. Events are gathered and handed out once a picture, so that two hundred a second cost no more than one; React
 * reads the status through `useFeed`.
 */
import { useSyncExternalStore } from 'react'
import type { ConsoleEvent } from '#contract'
import { workerAddress } from '../frame/trusted.ts'
import type { FeedMessage, FeedStatus } from './messages.ts'
import { openSource } from './source.ts'
import address from './worker.ts?sharedworker&url'

/** How the stream stands. */
export interface FeedState {
  readonly status: FeedStatus
  /** When the process was last heard of. */
  readonly lastAt: number
}

export interface Feed {
  /** Hears events in batches, in order. */
  listen(hear: (events: readonly ConsoleEvent[]) => void): () => void
  subscribe(changed: () => void): () => void
  state(): FeedState
  close(): void
}

/** A hidden page draws no pictures; it still has to take what it is sent. */
const hiddenMs = 500

/** Opens the stream, in a worker that all tabs share where the browser has them. */
export function openFeed(): Feed {
  const hearers = new Set<(events: readonly ConsoleEvent[]) => void>()
  const watchers = new Set<() => void>()
  // What the process is was read just now.
  let state: FeedState = { status: 'connecting', lastAt: Date.now() }
  let waiting: ConsoleEvent[] = []
  const flush = () => {
    const events = waiting
    waiting = []
    for (const hear of hearers) hear(events)
  }
  const take = (message: FeedMessage) => {
    if (message.kind === 'status') {
      state = { status: message.status, lastAt: message.lastAt ?? state.lastAt }
      for (const changed of watchers) changed()
      return
    }
    waiting.push(message.event)
    if (waiting.length > 1) return
    if (document.hidden) setTimeout(flush, hiddenMs)
    else requestAnimationFrame(flush)
  }
  const close = 'SharedWorker' in globalThis ? shareSource(take) : openSource(take)
  return {
    listen: hear => enter(hearers, hear),
    subscribe: changed => enter(watchers, changed),
    state: () => state,
    close,
  }
}

/** Adds to a set; the result takes it out. */
function enter<T>(set: Set<T>, each: T): () => void {
  set.add(each)
  return () => set.delete(each)
}

function shareSource(take: (message: FeedMessage) => void): () => void {
  const worker = new SharedWorker(workerAddress(address), { type: 'module' })
  worker.port.onmessage = ({ data }: MessageEvent<FeedMessage>) => take(data)
  worker.port.start()
  const leave = () => worker.port.postMessage('leave')
  addEventListener('pagehide', leave)
  return () => {
    removeEventListener('pagehide', leave)
    leave()
  }
}

/** The status of the stream; the component is drawn again when it changes. */
export function useFeed(feed: Feed): FeedState {
  return useSyncExternalStore(feed.subscribe, feed.state)
}
