/** The client's side of problems: read from answers, and calls that failed made again. */
import type { Problem } from '../../../core/problem.ts'
import { defineClientFeature, extend } from '../../../engine/client-feature.ts'
import { declaration } from '../../../engine/extensions.ts'
import { type ToolCallExtension, toolCalls } from '../../mcp/tools/messages.ts'
import { classify } from './classify.ts'
import { type ClientProblems, fromWire, problemExtension, problemsPort } from './messages.ts'
import { type OnAuthRequired, type OnProblem, Retries, type RetryOptions } from './retries.ts'

/** What a client does about failed calls. */
export interface ProblemOptions {
  /**
   * How failed tool calls are made again by themselves: only where waiting can help (problems of the categories transient and
   * rate_limited, busy or vanished servers), and only calls that do no harm when repeated. False: never.
   */
  readonly retry?: RetryOptions | false
  /** Told of a failure that the user can do something about, with what that is. */
  readonly onProblem?: OnProblem
  /** Gets the right that a call lacked; true: it is made once more. What HTTP asks for is the matter of `auth`. */
  readonly onAuthRequired?: OnAuthRequired
}

/** Reads problems from answers, and makes failed calls again. */
export const problemClient = defineClientFeature<ProblemOptions, ClientProblems>({
  name: 'problem',
  provides: problemsPort,
  options: { retry: 'any', onProblem: 'function', onAuthRequired: 'function' },
  setup(kit, { retry = {}, onProblem, onAuthRequired }) {
    const retries = new Retries({ retry, clock: kit.clock, random: Math.random, onProblem, onAuthRequired })
    return {
      side: { capabilities: revision => declaration(revision, problemExtension) },
      port: { classify, retry: call => retries.call(call) },
      extensions: [extend(toolCalls, { name: 'problem', attempts: call => retries.call(call), reads })],
    }
  },
})

const reads: NonNullable<ToolCallExtension['reads']> = {
  problem: ({ isError, _meta }) => (isError === true ? problemIn(_meta) : undefined),
}

/** The problem that a result tells of, if it does. */
function problemIn(meta: Readonly<Record<string, unknown>> | undefined): Problem | undefined {
  return meta === undefined ? undefined : fromWire(meta[problemExtension])
}
