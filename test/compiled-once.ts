/**
 * For the environment of programs that tests start many times from their sources: Node strips the types and compiles once, and
 * keeps what came of it. Programs that a client starts over stdio see little of our environment, so it is given to them.
 */
import { join } from 'node:path'
import { root } from '../scripts/lib/files.ts'

export const compiledOnce: Readonly<Record<string, string>> = { NODE_COMPILE_CACHE: join(root, '.cache', 'compiled') }
