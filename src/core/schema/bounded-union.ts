/** Unions of a foreign schema: `anyOf` and `oneOf` (JSON Schema core §10.2.1). */
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { type Apply, type Fault, fault, isList, isNames, typeBits, within } from './bounded-rule.ts'
import type { Run } from './bounded-run.ts'

const branchPrice = 4
/** Leaving a failed branch takes longer than finding nothing wrong. */
const faultPrice = 8

export function unionTest(schemas: readonly unknown[], apply: (schema: unknown) => Apply, onlyOne: boolean): Apply {
  const branches = schemas.map(apply)
  const all = branchesTest(branches, onlyOne)
  const marked = markedBranches(schemas, branches)
  if (marked === undefined) return all
  const { name, byMark } = marked
  const unknown = fault(
    `must be one of ${[...byMark.keys()]
      .slice(0, 20)
      .map(mark => clip(JSON.stringify(mark)))
      .join(', ')}`,
  )
  return (data, run) => {
    run.meter.spend(branchPrice)
    const mark = isRecord(data) && Object.hasOwn(data, name) ? data[name] : undefined
    if (typeof mark !== 'string') return all(data, run)
    const branch = byMark.get(mark)
    return branch === undefined ? within(name, unknown) : attempt(branch, data, run, true)
  }
}

function branchesTest(branches: readonly Apply[], onlyOne: boolean): Apply {
  const several = fault('must match only one of the allowed forms')
  return (data, run) => {
    let passed = 0
    // The branch that came furthest is most likely the one that was meant; where all stopped at the type, any of their types was.
    let furthest: Fault | undefined
    let reached = 0
    let types = 0
    let onlyTypes = true
    for (let index = 0; index < branches.length; index++) {
      run.meter.spend(branchPrice)
      const found = attempt(branches[index] as Apply, data, run, true)
      if (found !== undefined) {
        run.meter.spend(faultPrice)
        const reach = found.segments === undefined ? 0 : found.segments.length
        if (reach > reached) {
          furthest = found
          reached = reach
        }
        if (reach > 0 || found.types === 0) onlyTypes = false
        types |= found.types
      } else if (++passed > 1 && onlyOne) return several
      // What the other branches look at matters only where someone asks what was looked at.
      else if (!onlyOne && run.seen === undefined) return undefined
    }
    if (passed > 0) return undefined
    return furthest ?? (onlyTypes ? oneOfTypes(types) : noForm)
  }
}

interface MarkedBranches {
  readonly name: string
  readonly byMark: ReadonlyMap<string, Apply>
}

/**
 * Where every branch requires one member and gives it a text of its own (`kind: { const: 'circle' }`), that text says which branch can
 * fit: the others need not be tried, and a long list of such objects costs a fraction.
 */
function markedBranches(schemas: readonly unknown[], branches: readonly Apply[]): MarkedBranches | undefined {
  const [first] = schemas
  if (schemas.length < 2 || !isRecord(first) || !isNames(first['required'])) return undefined
  for (const name of first['required']) {
    const byMark = new Map<string, Apply>()
    const complete = schemas.every((schema, index) => {
      const mark = markOf(schema, name)
      if (mark === undefined || byMark.has(mark)) return false
      byMark.set(mark, branches[index] as Apply)
      return true
    })
    if (complete) return { name, byMark }
  }
  return undefined
}

function markOf(schema: unknown, name: string): string | undefined {
  // Beside a reference draft-07 counts nothing, so that nothing is read there.
  if (!isRecord(schema) || '$ref' in schema || !isNames(schema['required']) || !schema['required'].includes(name))
    return undefined
  const { properties } = schema
  const member = isRecord(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined
  if (!isRecord(member) || '$ref' in member) return undefined
  const only = isList(member['enum']) && member['enum'].length === 1 ? member['enum'][0] : undefined
  const mark = Object.hasOwn(member, 'const') ? member['const'] : only
  return typeof mark === 'string' ? mark : undefined
}

/** Applies a schema that may fail without the value being wrong; what a failed one has looked at does not count. */
export function attempt(branch: Apply, data: unknown, run: Run, counts: boolean): Fault | undefined {
  if (run.seen === undefined) return branch(data, run)
  const own = run.apart()
  const found = branch(data, own)
  if (found === undefined && counts) run.seen.take(own.seen, run.meter)
  return found
}

const noForm = fault('must match one of the allowed forms')
/** Made once for each set of types: there are few, and unions within unions ask for them without end. */
const typeFaults = new Map<number, Fault>()

function oneOfTypes(types: number): Fault {
  if (types === 0) return noForm
  const known = typeFaults.get(types)
  if (known !== undefined) return known
  const names = [...typeBits].filter(([name, bit]) => (types & bit) === bit && (name !== 'integer' || (types & 32) === 0))
  const made = fault(`must be ${names.map(([name]) => name).join(' or ')}`, types)
  typeFaults.set(types, made)
  return made
}
