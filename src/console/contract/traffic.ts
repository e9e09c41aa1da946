/** Figures: calls by server, tool and client; budgets; clients. All are of this process, since its start. */

/** What rows are grouped by; `each` has a row for each combination. */
export type TrafficBy = 'server' | 'tool' | 'client' | 'each'

/** `GET /traffic`. */
export interface TrafficQuery {
  /** Default `server`. */
  readonly by?: TrafficBy
  /** Default: an hour ago. */
  readonly since?: number
  /**
   * The length of one window in milliseconds, rounded up to a multiple of 10,000, or of 300,000 for times more than an hour ago. Default:
   * one window for the whole time.
   */
  readonly step?: number
}

/** Calls of one group in one window. */
export interface TrafficRow {
  /** Given with `by` server, tool and each. */
  readonly server?: string
  /** Given with `by` tool and each; the tool's name at its server. */
  readonly tool?: string
  /** Given with `by` client and each. */
  readonly client?: string
  /** Calls that reached the server and ended. */
  readonly calls: number
  /** Of these, those that failed. */
  readonly failures: number
  /** Calls that never reached the server, because a rule, a budget or a check refused them. */
  readonly refused: number
  /**
   * How long calls took: pairs of bucket and count. Bucket 0 is below 1 ms; bucket i from 1 on is from 2^((i−1)/8) ms up to 2^(i/8) ms.
   * Buckets of several rows add up.
   */
  readonly buckets: readonly (readonly [bucket: number, count: number])[]
}

/** One window: `at` is its beginning. */
export interface TrafficWindow {
  /** Its beginning. */
  readonly at: number
  /** Its length in milliseconds. */
  readonly step: number
  /** The groups that had calls. */
  readonly rows: readonly TrafficRow[]
}

/** A limit of what a client may spend, in its current window. */
export interface Budget {
  /** `CLIENT.N`, in the order of the config. */
  readonly name: string
  /** The client whose budget it is; of a host the server, with its feature set, or `all`. */
  readonly who: string
  /** What is counted. A gateway has calls and units, a host tokens, money and requests. */
  readonly unit: 'calls' | 'units' | 'tokens' | 'money' | 'requests'
  /** Spent and reserved. */
  readonly used: number
  /** The limit. */
  readonly most: number
  /** The length of the window in milliseconds. */
  readonly per: number
  /** When the window ends; absent before anything was spent. */
  readonly resets?: number
}

/** Who calls. */
export interface Client {
  /** A client of the config, or `local`, `anonymous`, `unlisted`. */
  readonly name: string
  /** Whether the config names it. */
  readonly configured: boolean
  /** The servers of which it sees something. */
  readonly servers: readonly string[]
  /** Calls that reached their server and ended. */
  readonly calls: number
  /** Calls that failed. */
  readonly failures: number
  /** Requests that were refused before. */
  readonly refused: number
  /** Its first and last call or refusal since the start of the process. */
  readonly first?: number
  /** Its last call or refusal. */
  readonly last?: number
  /** The last subjects of its tokens, newest first; at most 20. */
  readonly subjects: readonly string[]
  /** Its budgets. */
  readonly budgets: readonly Budget[]
  /** Refusals by rule or code, most frequent first; at most 20. */
  readonly refusals: readonly Refusals[]
}

/** Refusals of one kind. */
export interface Refusals {
  /** The rule, or the code where no rule refused. */
  readonly why: string
  /** How many. */
  readonly times: number
}
