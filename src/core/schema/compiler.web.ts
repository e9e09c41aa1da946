/**
 * The interpreter, always: Workers let no code be made from text, pages with a content security policy report whoever tries, and
 * everybody else downloads half as much.
 */
import type { Compile, Dialect } from './engine.ts'
import { loadInterpreter } from './interpreter.ts'

export function loadCompiler(dialect: Dialect): Promise<Compile> {
  return loadInterpreter(dialect)
}
