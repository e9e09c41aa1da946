/**
 * Whether media are what they are said to be, and no more than is taken. The cheap questions come first: sizes are reckoned from
 * lengths, types compared, then every character looked at, and of the bytes only the first are ever decoded.
 */
import { contradiction, isMime, isOfType, sniff } from '../../../core/artifact.ts'
import { base64Head, base64Size, isBase64 } from '../../../core/base64.ts'
import { type Problem, type ProblemCode, problem } from '../../../core/problem.ts'
import { clip } from '../../../jsonrpc/limits.ts'
import type { WireMedia, WireWarning } from './messages.ts'
import type { MediaPiece } from './pieces.ts'

/** Which rule a block breaks, and what to do about it. */
interface Breach {
  readonly rule: 'type' | 'base64' | 'size' | 'types' | 'magic'
  readonly block: string
  readonly message: string
  readonly fix: string
  readonly details?: Readonly<Record<string, unknown>>
}

interface MediaRules {
  readonly types: readonly string[] | undefined
  /** Bytes of all pieces together. */
  readonly max: number | undefined
  readonly strict: boolean
  readonly byReference: boolean
}

export function rulesFor(way: 'input' | 'output', media: WireMedia): MediaRules {
  return {
    types: media[`${way}_types`],
    max: media[`max_${way}_size_bytes`],
    strict: media.strict === true,
    byReference: media.binary_transport === 'reference',
  }
}

/** The first rule that is broken; undefined where none is. */
export function breachOf(pieces: readonly MediaPiece[], rules: MediaRules): Breach | undefined {
  let total = 0
  for (const piece of pieces) {
    if (piece.type !== undefined && !isMime(piece.type)) return noType(piece)
    const size = piece.data === undefined ? (piece.size ?? 0) : base64Size(piece.data)
    if (size === undefined) return noBase64(piece, 'breaks off in the middle of a byte, or has too much padding')
    total += size
    if (rules.max !== undefined && total > rules.max) return tooLarge(piece, total, rules.max, rules)
  }
  for (const piece of pieces) {
    const breach = typeBreach(piece, rules)
    if (breach !== undefined) return breach
  }
  return undefined
}

function typeBreach(piece: MediaPiece, { types, strict }: MediaRules): Breach | undefined {
  const { type, data } = piece
  const head = data === undefined ? undefined : base64Head(data)
  const meant = type ?? (head && sniff(head))
  if (strict && types !== undefined && (meant === undefined || !isListed(meant, types))) return unlisted(piece, meant, types)
  if (data === undefined || head === undefined) return undefined
  if (!isBase64(data)) return noBase64(piece, 'has characters that are none of base64')
  const shown = type === undefined ? undefined : contradiction(type, head)
  return shown === undefined || type === undefined ? undefined : contradicted(piece, type, shown)
}

/** Types outside the list, where that is no ground for a refusal. */
export function warningsOf(pieces: readonly MediaPiece[], { types, strict }: MediaRules): readonly WireWarning[] {
  if (types === undefined || strict) return []
  return pieces.flatMap(({ where, type }) => {
    if (type === undefined || isListed(type, types)) return []
    const message = `${where} is ${clip(type)}, which the tool does not announce: it lists ${clip(types.join(', '), 200)}`
    return [{ block: where, rule: 'types', message }]
  })
}

function isListed(type: string, types: readonly string[]): boolean {
  return types.some(pattern => isOfType(pattern, type))
}

/** What a caller is told whose arguments break a rule. */
export function refusedInput(breach: Breach): Problem {
  return refusal(breach, breach.rule === 'size' ? 'PAYLOAD_TOO_LARGE' : 'INVALID_INPUT')
}

/** What a caller is told where the tool's own result breaks one: nothing that another call would mend. */
export function refusedOutput(breach: Breach): Problem {
  return refusal(breach, breach.rule === 'size' ? 'PAYLOAD_TOO_LARGE' : 'SERVER_ERROR', true)
}

function refusal({ rule, block, message, fix, details }: Breach, code: ProblemCode, own = false): Problem {
  return problem(code, message, {
    suggestion: own ? 'The tool has run; do not call it again for this: its author has to mend its result' : fix,
    actor: own ? 'operator' : 'caller',
    details: { block, rule, ...details },
    ...(own ? { category: 'permanent' as const } : {}),
  })
}

function noType({ where, type = '' }: MediaPiece): Breach {
  const message = `The media type of ${where}, "${clip(type)}", is none`
  return { rule: 'type', block: where, message, fix: 'Write type/subtype, such as image/png' }
}

function noBase64({ where }: MediaPiece, how: string): Breach {
  return {
    rule: 'base64',
    block: where,
    message: `${where} is no base64: it ${how}`,
    fix: 'Send all of it, as base64 (RFC 4648 §4)',
  }
}

function tooLarge({ where }: MediaPiece, size: number, max: number, { byReference }: MediaRules): Breach {
  return {
    rule: 'size',
    block: where,
    message: `With ${where} there are at least ${size} bytes of media, and ${max} is the most there may be`,
    fix: `Send at most ${max} bytes in all${byReference ? ', or a reference' : ''}`,
    details: { size_bytes: size, max_size_bytes: max },
  }
}

function unlisted({ where }: MediaPiece, type: string | undefined, types: readonly string[]): Breach {
  const listed = clip(types.join(', '), 200)
  return {
    rule: 'types',
    block: where,
    message: `${where} is ${type === undefined ? 'of no known type' : clip(type)}, and only ${listed} may be there`,
    fix: `Send one of ${listed}`,
    details: { types },
  }
}

function contradicted({ where }: MediaPiece, type: string, shown: string): Breach {
  return {
    rule: 'magic',
    block: where,
    message: `${where} is said to be ${clip(type)}, and its first bytes show ${shown}`,
    fix: 'Name the type that it has, or send what was named',
    details: { mime_type: clip(type), found: shown },
  }
}
