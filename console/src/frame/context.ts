/** What every screen may ask for: the process, the session, the stream. */
import { createContext, useContext } from 'react'
import type { Role, Self } from '#contract'
import type { Feed } from '../feed/feed.ts'

export interface ConsoleContext {
  readonly self: Self
  readonly feed: Feed
}

export const ConsoleState = createContext<ConsoleContext | undefined>(undefined)

export function useConsole(): ConsoleContext {
  const state = useContext(ConsoleState)
  if (state === undefined) throw new Error('A screen is drawn outside of the console')
  return state
}

/** Whether the session has a role. */
export function useRole(role: Role): boolean {
  return useConsole().self.session.roles.includes(role)
}

/** Whether this kind of process has a path of the API, e.g. `/tapes`. */
export function useResource(path: string): boolean {
  return useConsole().self.resources.includes(path)
}
