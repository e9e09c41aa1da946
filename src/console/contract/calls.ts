/** The playground: what the servers offer, and calls at several revisions side by side. */

/** What can be called. */
export type CallKind = 'tool' | 'resource' | 'prompt'

/** `GET /servers/:name/tools`, `…/resources`, `…/prompts`: in the order of the server. */
export interface OfferQuery {
  /** As the server offers it at this revision. Default: the one that `GET /servers` names. The first use opens a connection. */
  readonly revision?: string
  /** Text in name, title, address or description, without regard to case. */
  readonly text?: string
}

/** A tool, a resource, a template or a prompt in a list. All texts are the server's: show them as text. */
export interface Offer {
  /** What it is. A template is a resource whose address has variables. */
  readonly kind: CallKind | 'template'
  /** The name; of a resource or template its address. Unique within its kind. */
  readonly name: string
  /** The name that people see. */
  readonly title?: string
  /** The beginning of the description, at most 500 characters. */
  readonly description?: string
  /** A tool: whether it only reads, as the server claims. */
  readonly readOnly?: boolean
  /** A tool: whether it may delete or overwrite, as the server claims. */
  readonly destructive?: boolean
  /** A tool: whether a repeated call changes nothing more, as the server claims. */
  readonly idempotent?: boolean
  /** A tool: whether a call may, must or must not run as a task. */
  readonly task?: 'forbidden' | 'optional' | 'required'
  /** A resource: its type. */
  readonly mimeType?: string
  /** A resource: its size in bytes, as the server claims. */
  readonly size?: number
}

/** `GET /servers/:name/offer?kind&item`: one of them, whole. */
export interface OfferDetail {
  /** As it is listed. */
  readonly offer: Offer
  /** The revision at which it is offered so. */
  readonly revision: string
  /** The whole definition, as the client understood it. */
  readonly definition: Readonly<Record<string, unknown>>
  /**
   * The JSON Schema of the arguments: of a tool as the server states it; for a prompt or a template it is made of the arguments or
   * variables, which are texts. Absent for a resource.
   */
  readonly input?: Readonly<Record<string, unknown>>
  /** The JSON Schema of the structured result of a tool. */
  readonly output?: Readonly<Record<string, unknown>>
  /** Arguments for which `POST /complete` may know values. */
  readonly completes: readonly string[]
}

/** `GET /servers/:name/offer`. */
export interface OfferItemQuery {
  /** What it is. */
  readonly kind: CallKind | 'template'
  /** Its name or address. */
  readonly item: string
  /** As in `OfferQuery`. */
  readonly revision?: string
}

/** A revision at which a server can be called. */
export interface RevisionRow {
  /** The revision. */
  readonly revision: string
  /** Whether it keeps sessions. */
  readonly era: 'stateful' | 'stateless'
  /** `spoken` and `unspoken` are known from a connection or from what the server said; `unknown` was not tried. */
  readonly state: 'spoken' | 'unspoken' | 'unknown'
  /** Why it is not spoken. */
  readonly why?: string
  /** The connection that is open at this revision. */
  readonly connection?: string
  /** The one that client and server agree on when nobody chooses. */
  readonly preferred: boolean
}

/** `POST /calls`: exactly one of `tool`, `uri`, `template` and `prompt`. */
export interface CallWish {
  /** The server. May be left out where there is only one. */
  readonly server?: string
  /** The tool to call. */
  readonly tool?: string
  /** The resource to read. */
  readonly uri?: string
  /** The template whose address is read; `arguments` fill in its variables. */
  readonly template?: string
  /** The prompt to get. */
  readonly prompt?: string
  /** Any JSON: of a tool exactly as the server gets it, also against its schema. */
  readonly arguments?: Readonly<Record<string, unknown>>
  /** 1 to 7 revisions. Default: the preferred one. */
  readonly revisions?: readonly string[]
  /** Further members of `_meta`. */
  readonly meta?: Readonly<Record<string, unknown>>
  /** Milliseconds without an answer or progress, from 100 to 3,600,000. Default 60,000. */
  readonly timeout?: number
  /** Call a tool as a task, where the revision has tasks. */
  readonly task?: boolean
}

/** How far a call is. */
export type CallState = 'running' | 'done' | 'cancelled'

/** How far it is at one revision. `opening`: the connection is being made. */
export type RunState = 'opening' | 'running' | 'done' | 'failed' | 'cancelled'

/** Why a call failed, without a result. */
export interface CallProblem {
  /** A word or a number that names it. */
  readonly code: string
  /** What happened. It may repeat words of the server. */
  readonly message: string
  /** What to do about it. */
  readonly fix?: string
  /** The member `data` of a JSON-RPC error. */
  readonly data?: unknown
}

/** A call at one revision. */
export interface CallRun {
  /** The revision. */
  readonly revision: string
  /** How far it is. */
  readonly state: RunState
  /** The connection that it runs on. */
  readonly connection?: string
  /** When the request was sent. */
  readonly from?: number
  /** How long the answer took. */
  readonly ms?: number
  /** How long it took to open the connection, where it was opened for this call. */
  readonly openMs?: number
  /** The last progress notification of the server. */
  readonly progress?: {
    /** How far it is. */
    readonly progress: number
    /** How far it will be, where the server says so. */
    readonly total?: number
    /** What the server says about it. */
    readonly message?: string
    /** How many such notifications came. */
    readonly times: number
  }
  /** Done: the tool itself reports a failure. */
  readonly isError?: boolean
  /** Failed: why. */
  readonly problem?: CallProblem
  /** Done: characters of the result as JSON. */
  readonly length?: number
  /**
   * Done: the result as it came over the wire (the member `result` of the answer; of a task its final result), up to 65,536 characters.
   * A longer one: `GET /calls/:id/results/:revision`. Absent in lists and events, and for sessions that may not see payloads.
   */
  readonly result?: unknown
  /** A result that is too long: its first 65,536 characters as JSON. */
  readonly beginning?: string
  /** The numbers of the first and last frame of this run, where frames are kept. */
  readonly frames?: {
    /** The first frame. */
    readonly first: number
    /** The last frame. */
    readonly last: number
  }
  /** What the call cost, where the server says so. */
  readonly cost?: string
}

/** A call. Lists and events leave out `arguments`, `meta` and results. */
export interface Call {
  /** Names the call. */
  readonly id: string
  /** The server. */
  readonly server: string
  /** What is called. */
  readonly kind: CallKind
  /** The tool, address or prompt. */
  readonly name: string
  /** When it began. */
  readonly at: number
  /** Who called. */
  readonly by: string
  /** `done` when it has ended at all revisions. */
  readonly state: CallState
  /** Absent in lists and events, and for sessions that may not see payloads. */
  readonly arguments?: Readonly<Record<string, unknown>>
  /** As `arguments`. */
  readonly meta?: Readonly<Record<string, unknown>>
  /** The time limit. */
  readonly timeout: number
  /** Whether it runs as a task. */
  readonly task: boolean
  /** One for each revision, in the order of the wish. */
  readonly runs: readonly CallRun[]
}

/** `GET /calls`: newest first. The last 200 calls are kept. */
export interface CallQuery {
  /** Calls of this server. */
  readonly server?: string
  /** Calls of this kind. */
  readonly kind?: CallKind
  /** Calls of this tool, address or prompt. */
  readonly name?: string
}

/** `GET /calls/:id/results/:revision`: a result, whole, as JSON text. Up to 32 MiB in all are kept; then the oldest are dropped. */
export interface CallResult {
  /** The result as JSON. */
  readonly text: string
}

/** `POST /complete`: values for an argument of a prompt or a variable of a template. */
export interface CompleteWish {
  /** The server. May be left out where there is only one. */
  readonly server?: string
  /** The prompt, */
  readonly prompt?: string
  /** or the template. */
  readonly template?: string
  /** The argument or variable. */
  readonly argument: string
  /** What was typed so far. */
  readonly value: string
  /** The other arguments as far as they are known; all are texts. */
  readonly context?: Readonly<Record<string, unknown>>
  /** Default: the preferred one. */
  readonly revision?: string
}

/** Values that the server knows, at most 100. */
export interface Completions {
  /** The values. */
  readonly values: readonly string[]
  /** How many there are in all, where the server says so. */
  readonly total?: number
  /** Whether there are more. */
  readonly hasMore: boolean
}
