/** Why something happened: what belongs to an id, as a sentence, a graph and a list. */
import type { Why } from './servers.ts'

/** What a node stands for. */
export type ExplainKind =
  /** An event of a server. */
  | 'event'
  /** A turn. */
  | 'turn'
  /** A tool call. */
  | 'call'
  /** A hook of a server. */
  | 'hook'
  /** Something that a rule, a budget, an approval or a person decided. */
  | 'decision'
  /** Something else that the audit log has about it. */
  | 'note'

/** A node of the graph of causes. */
export interface ExplainNode {
  /** Unique within the answer. */
  readonly id: string
  readonly kind: ExplainKind
  /** A few words. They may repeat names of a peer: show them as text. */
  readonly label: string
  readonly at?: number
  readonly server?: string
  /** How it ended, as the audit log says: `success`, `failure`, `timeout`, `refused`, `held`, `dropped`. */
  readonly outcome?: string
  /** The id to ask for next: of an event or a turn. */
  readonly ref?: string
  /** The turn that it is about. */
  readonly turn?: { readonly conversation: string; readonly seq?: number }
  /** The notes that it stands for, as indexes of `notes`. */
  readonly notes: readonly number[]
}

/** `caused`: the second came of the first. `part`: the second happened inside the first. */
export interface ExplainEdge {
  readonly from: string
  readonly to: string
  readonly kind: 'caused' | 'part'
}

/** An entry of the audit log, with its reason. */
export interface ExplainNote {
  readonly at: number
  readonly server: string
  readonly featureSet?: string
  readonly inferenceId?: string
  readonly eventId?: string
  readonly conversation?: string
  readonly cause?: string
  /** `push`, `turn`, `tool`, `hook.before`, `rollback`, … */
  readonly kind: string
  readonly outcome: string
  readonly detail?: string
  readonly ms?: number
  /** The rule, grant or approval that allowed it. */
  readonly rule?: string
  /** Why it was refused, failed or waits. */
  readonly why?: Why
  /** Who did it at the console or answered. */
  readonly by?: string
}

/** `GET /explain/:id`: by the id of an event or an inference. 404 where the audit log has nothing about it. */
export interface Explanation {
  readonly id: string
  /** What happened, in one to three sentences. */
  readonly sentence: string
  /** At most 200. */
  readonly nodes: readonly ExplainNode[]
  readonly edges: readonly ExplainEdge[]
  /** Oldest first; at most 2,000. */
  readonly notes: readonly ExplainNote[]
  /** Ids that belong together. */
  readonly joined: readonly string[]
  /** There is more than is given here. */
  readonly cut?: true
}
