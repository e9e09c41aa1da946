/** The process and the session: what the page reads first. */

/** What the process is. Decides which resources and screens exist. */
export type ConsoleKind = 'playground' | 'host' | 'gateway' | 'tape'

/** A screen of the page, by its path. */
export type Screen =
  | 'overview'
  | 'playground'
  | 'traffic'
  | 'conformance'
  | 'chat'
  | 'inbox'
  | 'approvals'
  | 'state'
  | 'explain'
  | 'audit'
  | 'rules'
  | 'clients'
  | 'logs'

/** What a session may do; none includes another. */
export type Role = 'viewer' | 'operator' | 'approver'

/** `GET /self`: the process as the page shows it. */
export interface Self {
  /** What the process is. */
  readonly kind: ConsoleKind
  /** The name of the gateway, host or target. */
  readonly name: string
  /** The version of this package. */
  readonly version: string
  /** The screens that this kind of process has, in the order of the rail. The first one is shown when the address names none. */
  readonly screens: readonly Screen[]
  /** The paths below `/api/1` that exist, as in `ConsoleApi`, without the method. */
  readonly resources: readonly string[]
  /** New at each start of the process; the first part of event ids. */
  readonly start: string
  /** The operating system's id of the process. */
  readonly pid: number
  /** The name of this replica: the host name of the machine. */
  readonly replica: string
  /** When the process started. */
  readonly startedAt: number
  /** The clock of the process when it answered. */
  readonly now: number
  /** Who sees exact arguments and definitions: everybody, or only operators and approvers. */
  readonly payloads: 'viewer' | 'approver'
  /** Nobody approves a call of his own. */
  readonly fourEyes: boolean
  /** Whether answers and audit entries outlive the process and are shared with other replicas. */
  readonly durable: boolean
  /** A playground: what it was started on, and how. */
  readonly target?: ConsoleTarget
  /** Who is signed in. */
  readonly session: Session
}

/** What a playground was started on. Targets come from the command line alone. */
export interface ConsoleTarget {
  /** The target as people read it. */
  readonly label: string
  /** The target as it would be typed again, with what it needs of quotes: `vivarium call ${again} …`. */
  readonly again: string
  /** The folder of the tapes. */
  readonly folder?: string
}

/** `GET /session`: who is signed in. */
export interface Session {
  /** The name that is written into the audit log with each action. */
  readonly by: string
  /** What the session may do. */
  readonly roles: readonly Role[]
  /** When it began. */
  readonly since: number
  /** When it ends, unless it is used before: each request moves the end. */
  readonly until: number
}
