/** The routes that a host has beside those that all consoles share. */
import type {
  Conversation,
  HostFacts,
  NewTurn,
  OfferedPrompt,
  TurnCall,
  TurnDetail,
  TurnPart,
  TurnQuery,
  TurnRow,
} from './conversations.ts'
import type { Explanation } from './explain.ts'
import type { Grant, GrantQuery, Spent, SpentQuery } from './grants.ts'
import type { InboxEvent, InboxEventDetail, InboxList, InboxQuery } from './inbox.ts'
import type { List, PageQuery } from './problem.ts'
import type {
  StateAtQuery,
  StateContent,
  StateDifference,
  StateDiffQuery,
  StateNode,
  StateRollback,
  StateRolledBack,
  StateSetRow,
} from './state.ts'
import type { TurnSpan } from './turn-spans.ts'
import type { UndoOrder, UndoPlan, UndoReport } from './undo.ts'

/** Routes of a host, as in `ConsoleApi`. */
export interface HostApi {
  /** Viewer. */
  'GET /host': { answer: HostFacts }
  /** Viewer. The newest first. */
  'GET /conversations': { query: PageQuery; answer: List<Conversation> }
  /** Viewer. The newest first. A name that has no turn yet gives an empty list. */
  'GET /conversations/:conversation/turns': { query: TurnQuery; answer: List<TurnRow> }
  /** Operator. Sends a message: 202 with the accepted turn. */
  'POST /conversations/:conversation/turns': { body: NewTurn; answer: TurnRow }
  /** Viewer. */
  'GET /conversations/:conversation/turns/:seq': { answer: TurnDetail }
  /** Viewer. A call with its whole result. */
  'GET /conversations/:conversation/turns/:seq/calls/:call': { answer: TurnCall }
  /** Operator. Stops a turn that runs or waits: 204. 409 `TURN_ENDED` where it does neither. */
  'POST /conversations/:conversation/turns/:seq/cancel': { answer: undefined }
  /** Viewer. What an undo would do. */
  'GET /conversations/:conversation/turns/:seq/undo': { answer: UndoPlan }
  /** Operator. Carries out the plan. */
  'POST /conversations/:conversation/turns/:seq/undo': { body: UndoOrder; answer: UndoReport }
  /** Operator. Continues turns of the user that a stop of the host interrupted: 204. */
  'POST /conversations/:conversation/resume': { answer: undefined }
  /** Viewer. What can be called as `/name`. */
  'GET /prompts': { query: PageQuery; answer: List<OfferedPrompt> }
  /** Operator: servers are asked. Completions for a line that begins with a slash; at most 100. */
  'GET /conversations/:conversation/complete': { query: { readonly line?: string }; answer: List<string> }

  /** Viewer. */
  'GET /inbox': { query: InboxQuery; answer: InboxList }
  /** Viewer. */
  'GET /inbox/:server/:event': { answer: InboxEventDetail }
  /** Operator. Tries a dead event again. 409 `NOT_DEAD` where it is in another state. */
  'POST /inbox/:server/:event/replay': { answer: InboxEvent }

  /** Viewer. By server and name. */
  'GET /state': { query: PageQuery; answer: List<StateSetRow> }
  /** Viewer. The newest first; `after` is a cursor. */
  'GET /state/:server/:set/tree': { query: PageQuery; answer: List<StateNode> }
  /** Viewer. */
  'GET /state/:server/:set/at': { query: StateAtQuery; answer: StateContent }
  /** Viewer. */
  'GET /state/:server/:set/diff': { query: StateDiffQuery; answer: StateDifference }
  /** Operator. */
  'POST /state/:server/:set/rollback': { body: StateRollback; answer: StateRolledBack }

  /** Viewer. */
  'GET /explain/:id': { answer: Explanation }

  /** Viewer. */
  'GET /grants': { query: GrantQuery; answer: List<Grant> }
  /** Approver. Takes an answer back, so that it is asked again: 204. */
  'DELETE /grants/:server/:id': { answer: undefined }
  /** Viewer. */
  'GET /spent': { query: SpentQuery; answer: List<Spent> }
}

/** Events that a host has beside those that all consoles share. */
export interface HostEvents {
  /** A turn was accepted, began, made progress with its calls, or ended. */
  readonly turn: TurnRow
  /** The next part of a turn. */
  readonly part: { readonly conversation: string; readonly seq: number; readonly at: number; readonly part: TurnPart }
  /** A span of a turn began or ended. */
  readonly span: TurnSpan
  /** An event arrived, ran, or ended. */
  readonly inbox: InboxEvent
  /** A checkpoint was recorded. */
  readonly checkpoint: { readonly server: string; readonly featureSet: string; readonly node: StateNode }
  /** Another checkpoint counts; `null`: none. */
  readonly head: { readonly server: string; readonly featureSet: string; readonly checkpoint: string | null }
}
