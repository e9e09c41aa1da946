/** A peer made of bare frames, in memory: says what a test tells it to say, answers what the server asks, writes down what comes. */
import type { Connection, Door } from '../../src/jsonrpc/connection.ts';
import { type RevisionId } from '../../src/revisions/index.ts';
export type Frame = Readonly<Record<string, unknown>>;
export declare const everyRevision: readonly RevisionId[];
export declare const official: readonly RevisionId[];
export declare const sessionRevisions: RevisionId[];
export declare const requestRevisions: RevisionId[];
export interface PeerOptions {
    /** What the peer declares, in its handshake or in every request. */
    readonly capabilities?: Frame;
    /** Authenticated as this. */
    readonly principal?: string;
    /** Answers to what the server asks by request. */
    readonly answers?: Readonly<Record<string, (params: Frame) => unknown>>;
    /** Without it the connection stays as it was opened: no handshake. */
    readonly hello?: boolean;
}
export interface Wire {
    /** All that came, in order. */
    readonly heard: readonly Frame[];
    /** Everything as it came. */
    readonly texts: readonly string[];
    /** What the server's answer to the handshake said. */
    readonly hello: Frame | undefined;
    say(value: unknown): void;
    begin(method: string, params?: Frame, id?: string | number): string | number;
    ask(method: string, params?: Frame, id?: string | number): Promise<Frame>;
    tell(method: string, params?: Frame): void;
    /** The next frame that fits and was not taken before. */
    next(fits: (frame: Frame) => boolean): Promise<Frame>;
    /** Settles when all that was said before has been answered, or never will be. */
    quiet(): Promise<readonly Frame[]>;
    close(): Promise<void>;
}
/** The `_meta` that each request of a stateless wire carries. */
export declare function envelope(revision: RevisionId, capabilities?: Frame): Frame;
export declare function enveloped(revision: RevisionId, params?: Frame, capabilities?: Frame): Frame;
export declare function helloParams(revision: RevisionId, capabilities?: Frame): Frame;
export declare function speak(server: {
    readonly door: Door;
}, revision: RevisionId, options?: PeerOptions): Promise<Wire>;
/** The same connection, of somebody. */
export declare function identified(connection: Connection, principal: string | undefined): Connection;
export declare function resultOf(frame: Frame): Frame;
export declare function errorOf(frame: Frame): {
    readonly code: number;
    readonly message: string;
    readonly data?: Frame;
};
/** The first text block of a tool's result. */
export declare function textOf(frame: Frame): string;
/** What a call is named on a wire. */
export declare function callName(revision: RevisionId): string;
