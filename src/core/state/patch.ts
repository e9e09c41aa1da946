/**
 * RFC 6902 patches by `rfc6902`, held in: applied to a copy and so whole or not at all, over own properties only, and capped in
 * steps, size and depth after every step, since a few copies can double a document beyond any bound.
 */

import { applyPatch, createPatch, type Operation } from 'rfc6902'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { problem } from '../problem.ts'

/** One step of an RFC 6902 patch. */
export type PatchStep = Operation

interface PatchLimits {
  readonly steps: number
  /** JSON text of the document. */
  readonly bytes: number
  readonly depth: number
}

const patchLimits: PatchLimits = { steps: 10_000, bytes: 8 * 1024 * 1024, depth: 128 }

const OPS = new Set(['add', 'remove', 'replace', 'move', 'copy', 'test'])

/** The patched document; the given one is left as it is. Throws a Problem that names the step. */
export function patched(document: unknown, steps: readonly unknown[], limits: PatchLimits = patchLimits): unknown {
  return patchedInPlace(structuredClone(document), [steps], limits)
}

/** The same for a document that is nobody else's, and several patches after each other: it is changed itself, also by one that fails. */
export function patchedInPlace(
  document: unknown,
  patches: readonly (readonly unknown[])[],
  limits: PatchLimits = patchLimits,
): unknown {
  // Under a name of its own the document can be replaced as a whole, which the library cannot do at its root.
  const frame = { at: document }
  let size = sizeOf(document)
  for (const steps of patches) {
    if (!Array.isArray(steps)) throw invalid('A patch must be a list of steps')
    if (steps.length > limits.steps) throw invalid(`The patch has ${steps.length} steps; the limit is ${limits.steps}`)
    for (const [index, step] of steps.entries()) {
      const checked = checkStep(frame.at, step, index)
      size += growth(frame.at, checked)
      // What was replaced or removed is not subtracted, so the estimate may be too high; then it is counted anew.
      if (size > limits.bytes) size = sizeOf(frame.at) + growth(frame.at, checked)
      if (size > limits.bytes) throw tooLarge(index, limits)
      run(frame, checked, index)
    }
  }
  if (isDeeper(frame.at, limits.depth)) throw invalid(`The patched document is nested deeper than ${limits.depth} levels`)
  return frame.at
}

/** The steps that lead from one document to another. */
export function difference(before: unknown, after: unknown): readonly PatchStep[] {
  return createPatch({ at: before }, { at: after }).map(step => {
    const path = step.path.slice('/at'.length)
    return 'from' in step ? { ...step, path, from: step.from.slice('/at'.length) } : { ...step, path }
  })
}

function checkStep(document: unknown, step: unknown, index: number): PatchStep {
  if (!isRecord(step) || typeof step.op !== 'string' || !OPS.has(step.op) || typeof step.path !== 'string')
    throw invalid(`Step ${index} is not valid: it needs a path, and an op that is one of ${[...OPS].join(', ')}`)
  const path = readPointer(step.path)
  const missing = (): Error => invalid(`Step ${index}: no value exists at its path`)
  if (step.op === 'move' || step.op === 'copy') {
    if (typeof step.from !== 'string') throw invalid(`Step ${index}: ${step.op} needs a from`)
    const from = readPointer(step.from)
    if (follow(document, from) === undefined || !takes(document, path)) throw missing()
    if (step.op === 'move' && path.length > from.length && from.every((token, i) => token === path[i]))
      throw invalid(`Step ${index} moves a value into itself`)
    if (step.op === 'move' && from.length === 0 && path.length > 0) throw invalid(`Step ${index} moves the whole document`)
  } else if (step.op === 'add') {
    if (!takes(document, path)) throw missing()
  } else if (follow(document, path) === undefined) throw missing()
  if (step.op === 'remove' && path.length === 0) throw invalid(`Step ${index} removes the whole document; use replace instead`)
  if ((step.op === 'add' || step.op === 'replace' || step.op === 'test') && !('value' in step))
    throw invalid(`Step ${index}: ${step.op} needs a value`)
  return step as unknown as PatchStep
}

function growth(document: unknown, step: PatchStep): number {
  if (step.op === 'add' || step.op === 'replace') return sizeOf(step.value) + step.path.length
  return step.op === 'copy' ? sizeOf(follow(document, readPointer(step.from))) + step.path.length : 0
}

function run(frame: { at: unknown }, step: PatchStep, index: number): void {
  const placed = { ...step, path: `/at${step.path}` }
  const operation = 'from' in step ? { ...placed, from: `/at${step.from}` } : placed
  const [fault] = applyPatch(frame, [operation as Operation])
  if (fault?.name === 'TestError')
    throw problem('STATE_CONFLICT', `Step ${index}: the test failed`, {
      category: 'permanent',
      suggestion: 'Read the state again, and send a patch that fits it',
    })
  if (fault !== null) throw invalid(`Step ${index} cannot be applied`)
}

function tooLarge(index: number, limits: PatchLimits): Error {
  return problem('PAYLOAD_TOO_LARGE', `Step ${index} makes the document larger than ${limits.bytes} bytes`)
}

function sizeOf(value: unknown): number {
  return JSON.stringify(value)?.length ?? 0
}

/** Without recursion, which a deep enough document would break. */
function isDeeper(document: unknown, depth: number): boolean {
  let level: unknown[] = [document]
  for (let deep = 0; level.length > 0; deep++) {
    if (deep > depth) return true
    level = level.flatMap(value => (typeof value === 'object' && value !== null ? Object.values(value) : []))
  }
  return false
}

// JSON pointers, followed over own properties only: what an object inherits is not part of a document.

/** Names that libraries and engines treat as something else than data. */
const REFUSED = new Set(['__proto__', 'constructor', 'prototype'])

/** The tokens of a pointer. Throws where it is none, or names what no document may. */
function readPointer(pointer: string): readonly string[] {
  if (pointer === '') return []
  if (!pointer.startsWith('/') || /~(?![01])/.test(pointer)) throw invalid(`${clip(pointer)} is not a JSON pointer`)
  const tokens = pointer
    .slice(1)
    .split('/')
    .map(token => token.replaceAll('~1', '/').replaceAll('~0', '~'))
  const refused = tokens.find(token => REFUSED.has(token))
  if (refused !== undefined) throw invalid(`The name ${refused} cannot be used in a patch`)
  return tokens
}

/** What is there; undefined where nothing is. */
function follow(document: unknown, tokens: readonly string[]): unknown {
  let value = document
  for (const token of tokens) {
    if (typeof value !== 'object' || value === null) return undefined
    if (Array.isArray(value) && !isIndex(token)) return undefined
    if (!Object.hasOwn(value, token)) return undefined
    value = (value as Record<string, unknown>)[token]
  }
  return value
}

/** As the standard has it: digits without a leading zero. */
function isIndex(token: string): boolean {
  return /^(0|[1-9]\d{0,9})$/.test(token)
}

/** Whether a value can be put at a pointer: its parent is there and takes that name. */
function takes(document: unknown, tokens: readonly string[]): boolean {
  const name = tokens.at(-1)
  if (name === undefined) return true
  const parent = follow(document, tokens.slice(0, -1))
  if (typeof parent !== 'object' || parent === null) return false
  return !Array.isArray(parent) || name === '-' || (isIndex(name) && Number(name) <= parent.length)
}

function invalid(message: string): Error {
  return problem('STATE_INVALID', message, { suggestion: 'Send a JSON Patch according to RFC 6902' })
}
