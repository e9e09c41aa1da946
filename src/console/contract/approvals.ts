/** What waits for a person, and the answers. */

/** What is asked about. A gateway has `call`, `tool` and `launch`; a host has all but `launch`. */
export type ApprovalKind =
  /** A tool call that a rule asks about. */
  | 'call'
  /** A new or changed tool definition that is held. */
  | 'tool'
  /** A command or address that differs from the known one. */
  | 'launch'
  /** Input that a server asks its user for. */
  | 'form'
  /** A page that a server wants to open. */
  | 'page'
  /** An inference that a server asks for. */
  | 'sampling'
  /** A feature set that a server wants enabled. */
  | 'set'
  /** Something else that a server wants: to start a turn by an event, to see roots, to use a scope. */
  | 'access'
  /** A changed config file. */
  | 'config'

/** How much a mistake would cost. `unknown`: nobody stated it. */
export type ApprovalRisk = 'safe' | 'reversible' | 'destructive' | 'unknown'

/** An entry of the queue. */
export interface Approval {
  /** Names it in the address. */
  readonly id: string
  /** What is asked about. */
  readonly kind: ApprovalKind
  /** The server that it is about. */
  readonly server: string
  /** The tool's name at the server. */
  readonly tool?: string
  /** The question, in a sentence. It may repeat words of a peer: show it as text. */
  readonly text: string
  /**
   * Exactly what a yes lets happen: the arguments of a call, the current definition of a tool, the changed lines of a launch; of a form
   * `ApprovalForm`, of a page `ApprovalPage`, of sampling `ApprovalSampling`. Absent where the session may not see it, or where `refuseOnly`
   * is given. Lists and events also leave out payloads of more than 65,536 characters:
   * `GET /approvals/:id` has them.
   */
  readonly payload?: unknown
  /** Characters of the payload as JSON. */
  readonly length: number
  /** A changed tool: its pinned definition and the current one. `before` is absent for a new tool. */
  readonly before?: unknown
  /** A changed tool: its current definition. */
  readonly after?: unknown
  /** The differences, one line each; long ones are cut. */
  readonly changes?: readonly string[]
  /** Name it in the answer. It covers the id, the kind, the text and the whole payload. */
  readonly digest: string
  /** The rule that asks. */
  readonly rule: string
  /** How much a mistake would cost. */
  readonly risk: ApprovalRisk
  /** Whose call it is: the client of the gateway, and the subject of its token. */
  readonly client?: string
  /** The subject of the token of whose call it is. */
  readonly subject?: string
  /** Since when it waits. */
  readonly since: number
  /** When it expires without an answer. */
  readonly until?: number
  /** Why it can only be refused. */
  readonly refuseOnly?: string
  /** What `for` may be in a yes. `once` is always among them. */
  readonly lasts: readonly string[]
  /** A yes counts until what is shown changes, whatever `for` says: a feature set or a tool definition of a host. */
  readonly untilChanged?: true
  /** Wider answers that a host offers: name one as `covers` of a yes. Show its sentence before somebody chooses it. */
  readonly wider?: readonly WiderApproval[]
  /** What is unusual about it: the spelling of a path, or more rights than before. */
  readonly flaw?: string
  /** What a call acts on, where the host can read it from the arguments. Absent where the session may not see payloads. */
  readonly scopes?: readonly ApprovalScope[]
  /** The conversation and turn that it belongs to. */
  readonly conversation?: string
  /** The id of that turn: see `/explain/:id`. */
  readonly inferenceId?: string
}

/** A wider answer than exactly what is shown. */
export interface WiderApproval {
  /** Every call of the tool, or everything in the scope. */
  readonly covers: 'tool' | 'scope'
  /** What it covers, as a sentence. */
  readonly text: string
}

/** What a call acts on. */
export interface ApprovalScope {
  /** Its name for people, e.g. a path. */
  readonly label: string
  /** The same for programs. */
  readonly payload?: unknown
}

/** The payload of a `form`. A yes carries `content` that fits the schema. */
export interface ApprovalForm {
  /** What the server asks, in its words. */
  readonly message: string
  /** A flat JSON schema: an object with text, number, boolean and enum members. */
  readonly schema: Readonly<Record<string, unknown>>
  /** Fields that ask for a password, key or token. Forms must not do that: warn the user. */
  readonly secrets?: readonly string[]
}

/** The payload of a `page`. A yes says that the user has opened it; the page never opens it by itself. */
export interface ApprovalPage {
  /** What the server says, in its words. */
  readonly message: string
  /** The whole address. */
  readonly url: string
  /** Where it leads: the part of the address that cannot be disguised. */
  readonly domain: string
}

/** The payload of `sampling`. `prompt`: what is sent to the model. `answer`: what the server gets. */
export interface ApprovalSampling {
  readonly stage: 'prompt' | 'answer'
  readonly model: string
  readonly params: unknown
  /** The answer of the model. */
  readonly result?: unknown
}

/** `POST /approvals/:id`. */
export interface ApprovalAnswer {
  /** Whether it may happen. */
  readonly yes: boolean
  /** The digest of the approval as it was shown. */
  readonly digest: string
  /** One of `lasts`. Default `once`. */
  readonly for?: string
  /** One of `wider`. Default: exactly what is shown. */
  readonly covers?: 'tool' | 'scope'
  /** For the audit log, at most 500 characters. */
  readonly reason?: string
  /** The filled form, where `kind` is `form`. */
  readonly content?: Readonly<Record<string, unknown>>
}

/** An answer that counts. */
export interface Answered {
  /** The id of the approval. */
  readonly id: string
  /** Absent where it ended without an answer that is known here: it expired, or its caller left. */
  readonly yes?: boolean
  /** Who answered, where that is known. */
  readonly by?: string
  /** When. */
  readonly at: number
  /** Why, as the answer said. */
  readonly reason?: string
}

/** Earlier answers about the same tool of the same server. */
export interface LikeApprovals {
  /** How many were approved. */
  readonly yes: number
  /** How many were refused. */
  readonly no: number
  /** Since when they are counted. */
  readonly since: number
}

/** `GET /approvals/:id`: also for some minutes after it was answered. */
export interface ApprovalDetail {
  /** The approval, whole. */
  readonly approval: Approval
  /** The answer, where there was one. */
  readonly answered?: Answered
  /** Earlier answers about the same tool. */
  readonly like?: LikeApprovals
}
