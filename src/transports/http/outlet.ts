/** The open end of one event stream: a socket, or the body of a web Response. What both faces give to a stream. */
import type { Awaitable } from '../../jsonrpc/message.ts'

export interface StreamOutlet {
  /** Takes text. False: the reader lags behind, and nothing more should be written before `drained`. */
  write(text: string): boolean
  /** Writes the last text and lets the reader go once it has read everything. */
  end(text?: string): void
  /** Severs the reader at once. */
  cut(): void
  /** While on, the reader is cut if it takes nothing for too long. `end` turns it on by itself. */
  watch(on: boolean): void
  /** True between a write that gave false and `drained`. */
  readonly blocked: boolean
  /** Who writes here now. */
  owner: OutletOwner | undefined
  /** In whose count of streams this one is. */
  readonly tenant: Tenant | undefined
  /** Sweeps since the last write: tells a silent stream without reading a clock at every write. */
  silence: number
}

/** Whose open streams are counted together: what one user listens to by GET and what answers its POSTs, apart. */
export interface Tenant {
  /** The user, or the network of whoever did not sign in. */
  readonly account: string
  readonly key: string
  /** The limit that holds for it. Undefined: it has a share of all. */
  readonly limit: 'streamsPerPrincipal' | 'answersPerPrincipal' | undefined
  /** When what proved who it is expires: its streams end soon after. */
  readonly expiresAt: number | undefined
  /** Whether what proved who it is still does: its streams end when it does not. Absent: nobody can tell. */
  holds?(): Awaitable<boolean>
}

export interface OutletOwner {
  /** True if no answer is awaited on it, so that it may end whenever the server stops. */
  readonly listening: boolean
  /** The outlet takes text again. */
  drained(): void
  /** The reader is gone or was let go: called exactly once. */
  gone(): void
}
