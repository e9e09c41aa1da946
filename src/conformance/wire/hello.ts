/** The opening of a connection as each revision has it, and whether the peer speaks that revision at all. */
import { clip, echo } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import type { Json, OpenOptions, RevisionId } from '../scenario.ts'
import { capabilitiesOf, isStateless, kitInfo, wireVersion } from './envelope.ts'
import type { Answer, RawPeer } from './raw-peer.ts'

/** The peer does not speak this revision here, and says so in its own way. */
export class NotSpoken extends Error {
  override readonly name = 'NotSpoken'
}

/** The server lets in only who brings credentials. */
export class Guarded extends Error {
  override readonly name = 'Guarded'
}

/** Opening takes longer than other answers: a process may have to start first. */
const helloMs = 20_000

/** Gives the result of the handshake. Throws NotSpoken. */
export async function sayHello(peer: RawPeer, revision: RevisionId, options: OpenOptions): Promise<Json> {
  if (isStateless(revision)) return discover(peer, revision)
  return revision === 's3' ? dialectHello(peer) : initialize(peer, revision, options)
}

/** A refusal for want of credentials says nothing about revisions. */
function letIn(answer: Answer): Answer {
  const guarded = guardedBy(answer.status)
  if (guarded !== undefined) throw guarded
  return answer
}

/** What a status says of credentials; undefined: nothing. */
export function guardedBy(status: number | undefined): Guarded | undefined {
  if (status !== 401 && status !== 403) return undefined
  return new Guarded(
    `The server wants credentials: it answered with HTTP status ${status}. Give them: vivarium test --bearer-env NAME or --header 'Name: value'`,
  )
}

async function discover(peer: RawPeer, revision: RevisionId): Promise<Json> {
  const answer = letIn(await peer.request('server/discover', {}, { ms: helloMs }))
  const versions = isRecord(answer.result) ? answer.result['supportedVersions'] : undefined
  if (!isRecord(answer.result)) throw new NotSpoken(`server/discover was answered by ${shown(answer)}`)
  if (Array.isArray(versions) && !versions.includes(wireVersion(revision)))
    throw new NotSpoken(`supportedVersions is ${echo(versions)}`)
  return answer.result
}

async function initialize(peer: RawPeer, revision: RevisionId, options: OpenOptions): Promise<Json> {
  const params = { protocolVersion: revision, capabilities: capabilitiesOf(revision, options), clientInfo: kitInfo }
  const answer = letIn(await peer.request('initialize', params, { ms: helloMs }))
  const { result } = answer
  if (!isRecord(result)) throw new NotSpoken(`initialize was answered by ${shown(answer)}`)
  if (result['protocolVersion'] !== revision)
    throw new NotSpoken(`initialize with ${revision} was answered with ${echo(result['protocolVersion'] ?? null)}`)
  await peer.notify('notifications/initialized')
  return result
}

async function dialectHello(peer: RawPeer): Promise<Json> {
  const clientCapabilities = { supportsProgress: true, supportsCancellation: true }
  const params = { mcpVersion: wireVersion('s3'), clientCapabilities }
  const answer = letIn(await peer.request('initialize', params, { ms: helloMs }))
  const { result } = answer
  if (!isRecord(result) || !(isRecord(result['server']) || isRecord(result['serverCapabilities'])))
    throw new NotSpoken(`initialize with mcpVersion was answered by ${shown(answer)}`)
  await peer.notify('initialized')
  return result
}

function shown({ error, status, frame }: Answer): string {
  if (error !== undefined) return `error ${echo(error.code)} (${echo(error.message)})`
  return status === undefined ? clip(frame?.text ?? 'nothing') : `HTTP status ${status}`
}
