/** What only Node, Bun and Deno can do, asked for on a platform that has nothing but web standards: Workers, browsers. */
import { type Problem, problem } from './problem.ts'

/** `what` needs sockets, files or processes; `instead` says what there is here, as an instruction. */
export function needsNode(what: string, instead: string): Problem {
  return problem('UNSUPPORTED', `${what} needs Node, Bun or Deno, and this is the build for browsers and Workers. ${instead}`, {
    actor: 'operator',
    suggestion: instead,
    documentation: 'docs/guide/runtimes.md',
  })
}
