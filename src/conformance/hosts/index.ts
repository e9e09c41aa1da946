/** For hosts of MCP Live: everything they are judged by, and the judge. */
import type { ClientScenario } from '../clients/define.ts'
import type { ClientUnderTest } from '../clients/drive.ts'
import { type JudgeClientOptions, judgeRole } from '../clients/judge.ts'
import type { Report } from '../report.ts'
import { inferenceScenarios } from './inference.ts'
import { hello, openingScenarios } from './opening.ts'
import { requestScenarios } from './requests.ts'

/** What every host is judged by. */
export const hostScenarios: readonly ClientScenario[] = [...openingScenarios, ...requestScenarios, ...inferenceScenarios]

/**
 * Judges a host of MCP Live by a live server that is written by hand: a command that gets its address, or a function.
 *
 * @example const report = await judgeHost({ command: 'node my-host.js' })
 */
export function judgeHost(host: ClientUnderTest, options: JudgeClientOptions = {}): Promise<Report> {
  return judgeRole(host, { scenarios: hostScenarios, ...options, role: 'host', first: hello })
}
