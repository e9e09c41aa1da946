/** What only a host has, for its routes: conversations, undo, inbox, states, explanations, grants. */
import type { Host } from '../../host/host.ts'
import type { HostFacts } from '../contract/conversations.ts'
import type { RunningTurns } from './running-turns.ts'

/** A host as its routes see it. */
export interface AgentSource {
  readonly host: Host
  readonly turns: RunningTurns
  readonly facts: Pick<HostFacts, 'conversation' | 'examples'>
}
