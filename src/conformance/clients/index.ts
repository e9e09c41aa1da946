/** For clients: everything they are judged by, and the judge. */
import type { Report } from '../report.ts'
import { authScenarios } from './auth/sign-in.ts'
import { askingScenarios } from './base/asking.ts'
import { callScenarios } from './base/calls.ts'
import { httpScenarios } from './base/http.ts'
import { listScenarios } from './base/lists.ts'
import { roundScenarios } from './base/rounds.ts'
import { runScenarios } from './base/run.ts'
import type { ClientScenario } from './define.ts'
import type { ClientUnderTest } from './drive.ts'
import { consentScenarios } from './extensions/consent.ts'
import { contentScenarios } from './extensions/content.ts'
import { ongoingScenarios } from './extensions/ongoing.ts'
import { type JudgeClientOptions, judgeRole } from './judge.ts'

/** What every client is judged by, as far as it declares what that is about. */
export const clientScenarios: readonly ClientScenario[] = [
  ...runScenarios,
  ...listScenarios,
  ...callScenarios,
  ...askingScenarios,
  ...roundScenarios,
  ...httpScenarios,
  ...authScenarios,
  ...consentScenarios,
  ...ongoingScenarios,
  ...contentScenarios,
]

/**
 * Judges a client: a command that gets the address of a scripted server as its last word, or a function that gets it as its
 * argument. It is started once for each play.
 *
 * @example const report = await judgeClient({ command: 'node my-client.js' })
 */
export function judgeClient(client: ClientUnderTest, options: JudgeClientOptions = {}): Promise<Report> {
  return judgeRole(client, { scenarios: clientScenarios, ...options, role: 'client' })
}
