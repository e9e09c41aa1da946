/** The upstreams of a gateway (for a host: its servers). */

/** The state of a connection. */
export type ServerStatus = 'connecting' | 'up' | 'down' | 'refused'

/** A reason with its remedy. */
export interface Why {
  /** Names the reason, for programs. */
  readonly code: string
  /** The option or rule that decided it. */
  readonly rule: string
  /** What happened, in a sentence. */
  readonly message: string
  /** What to do about it. */
  readonly fix: string
}

/** A server in a list. */
export interface ServerRow {
  /** The name in the config. */
  readonly name: string
  /** The state of the connection. */
  readonly status: ServerStatus
  /** Why it is not up, and what to do. */
  readonly why?: Why
  /** The revision that it speaks, while it is up. */
  readonly revision?: string
  /** Whether that revision keeps sessions (`stateful`) or not. */
  readonly era?: 'stateful' | 'stateless'
  /** How it is reached. */
  readonly carrier?: 'stdio' | 'http' | 'websocket' | 'memory'
  /** How many of each kind it offers now; `resources` includes templates. */
  readonly tools: number
  /** How many resources and templates it offers. */
  readonly resources: number
  /** How many prompts it offers. */
  readonly prompts: number
  /** How many of its tool definitions wait for approval. */
  readonly held: number
  /** How many things of it cannot be offered. */
  readonly left: number
}

/** Something that a server offers. */
export interface ServerItem {
  /** What it is. */
  readonly kind: 'tool' | 'resource' | 'template' | 'prompt'
  /** The name, or address of a resource, that clients see. */
  readonly name: string
  /** Its name at the server. */
  readonly own: string
}

/** `GET /servers/:name`. */
export interface ServerDetail extends ServerRow {
  /** At most 2,000; `tools`, `resources` and `prompts` count all. */
  readonly items: readonly ServerItem[]
  /** What of it cannot be offered, and why. */
  readonly leftOut: readonly Why[]
  /** The last 200 lines of its standard error, oldest first, without secrets. */
  readonly stderr: readonly StderrLine[]
}

/** A line that a server wrote on standard error. */
export interface StderrLine {
  /** When it was written. */
  readonly at: number
  /** The line, without secrets and control characters. */
  readonly text: string
}
