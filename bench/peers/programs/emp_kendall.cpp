// Kendall's sum over pairs of two owners with emp-sh2pc (garbled circuits, no TLS).
//
// docs/peers.md says how it is built. It was written after the README of emp-sh2pc (commit c71f981)
// and was not compiled where this project was written.
//
//   ./emp_kendall 1 PAIRS & ./emp_kendall 2 PAIRS

#include <emp-sh2pc/emp-sh2pc.h>

#include <chrono>
#include <iostream>
#include <vector>

using namespace emp;
using Context = SH2PCSession::ctx_t;
using Field = UInt_T<Context, 7>; // whole numbers of 0 to 127
using Sum = Int_T<Context, 16>;

int main(int argc, char **argv)
{
    int party = parse_party(argv), pairs = argc > 2 ? atoi(argv[2]) : 9042;
    auto started = std::chrono::steady_clock::now();
    auto io = party == ALICE ? NetIO::listen(peer_port()) : NetIO::connect(peer_ip(), peer_port());
    auto connected = std::chrono::steady_clock::now();
    SH2PCSession session(io.get(), party);
    Sum sum = Sum::constant(session.ctx(), 0);
    Sum one = Sum::constant(session.ctx(), 1), zero = sum;
    for (int i = 0; i < pairs; i++) {
        Field x = session.input<Field>(ALICE, (uint64_t)(7919 * i % 128));
        Field y = session.input<Field>(ALICE, (uint64_t)(104729L * i / 3 % 128));
        Field other_x = session.input<Field>(BOB, (uint64_t)(7907 * i % 128));
        Field other_y = session.input<Field>(BOB, (uint64_t)(104723L * i / 3 % 128));
        auto x_above = x > other_x, x_below = other_x > x;
        auto y_above = y > other_y, y_below = other_y > y;
        auto agree = (x_above & y_above) ^ (x_below & y_below);
        auto differ = (x_above & y_below) ^ (x_below & y_above);
        sum = sum + zero.select(agree, one) - zero.select(differ, one);
    }
    auto result = session.reveal(sum, PUBLIC);
    auto ended = std::chrono::steady_clock::now();
    using Milliseconds = std::chrono::duration<double, std::milli>;
    std::cout << "sum " << (int64_t)result.value() << ", connecting "
              << Milliseconds(connected - started).count() << " ms, in all "
              << Milliseconds(ended - connected).count() << " ms\n";
    session.finalize();
}
