/** This command as a program to start: from the source as well as from what it is built to. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Command } from '../client/target.ts'

/** Bundled, this file is part of a chunk beside the folder of the command. */
const places = ['./main.ts', './main.js', '../cli/main.js'].map(path => fileURLToPath(new URL(path, import.meta.url)))

/** @example selfCommand(['serve', 'server.ts', '--stdio']) */
export function selfCommand(args: readonly string[]): Command & { readonly args: readonly string[] } {
  const main = places.find(existsSync)
  if (main === undefined) throw new Error(`The vivarium command is not where it was built: ${places.join(', ')}`)
  return { command: process.execPath, args: [main, ...args] }
}
