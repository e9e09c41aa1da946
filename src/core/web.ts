/**
 * What stands in, in the build for browsers and Workers, for modules of this room that serve Node: `required-node.ts` and
 * `schema/compiler.ts`. Nothing is required of Node there: Workers that imitate it imitate any version.
 */
import { type Problem, problem } from './problem.ts'
import type { Compile, Dialect } from './schema/engine.ts'
import { loadInterpreter } from './schema/interpreter.ts'

/**
 * The refusal of what only Node, Bun and Deno can do, on a platform that has nothing but web standards: `what` needs sockets, files
 * or processes; `instead` says what there is here, as an instruction.
 */
export function needsNode(what: string, instead: string): Problem {
  return problem('UNSUPPORTED', `${what} needs Node, Bun or Deno; this is the build for browsers and Workers. ${instead}`, {
    actor: 'operator',
    suggestion: instead,
    documentation: 'docs/guide/runtimes.md',
  })
}

/**
 * The interpreter, always: Workers let no code be made from text, pages with a content security policy report whoever tries, and
 * everybody else downloads half as much.
 */
export function loadCompiler(dialect: Dialect): Promise<Compile> {
  return loadInterpreter(dialect)
}
