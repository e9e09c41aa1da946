/** For clients: everything they are judged by, and the judge. */
import type { Report } from '../report.ts'
import { authClientScenarios } from './auth/index.ts'
import { baseClientScenarios } from './base/index.ts'
import type { ClientUnderTest } from './drive.ts'
import { extensionClientScenarios } from './extensions/index.ts'
import { type JudgeClientOptions, judgeRole } from './judge.ts'
import type { ClientScenario } from './scenario.ts'

export const clientScenarios: readonly ClientScenario[] = [
  ...baseClientScenarios,
  ...authClientScenarios,
  ...extensionClientScenarios,
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
