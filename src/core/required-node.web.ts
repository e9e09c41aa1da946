/** The face of `required-node.ts` on the web. Nothing is required: Workers that imitate Node imitate any version of it. */
import { type Problem, problem } from './problem.ts'

/**
 * The refusal of what only Node, Bun and Deno can do, on a platform that has nothing but web standards: `what` needs sockets, files
 * or processes; `instead` says what there is here, as an instruction.
 */
export function needsNode(what: string, instead: string): Problem {
  return problem('UNSUPPORTED', `${what} needs Node, Bun or Deno, and this is the build for browsers and Workers. ${instead}`, {
    actor: 'operator',
    suggestion: instead,
    documentation: 'docs/guide/runtimes.md',
  })
}
