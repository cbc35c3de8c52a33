//! The options of a connection in use, by `TCP_INFO` of either end.

use bdp_model::flow::connection::Connection;
use bdp_sys::tcp_info::TcpInfo;

/// Returns the sender's view; `None` if its kernel reported nothing.
pub fn of_sender(info: &TcpInfo) -> Option<Connection> {
    of(info, info.rcv_wscale, info.snd_wscale)
}

/// Returns the receiver's view.
pub fn of_receiver(info: &TcpInfo) -> Option<Connection> {
    of(info, info.snd_wscale, info.rcv_wscale)
}

/// The shift of this end's own windows is the one that it announced.
fn of(info: &TcpInfo, of_sender: Option<u8>, of_receiver: Option<u8>) -> Option<Connection> {
    let TcpInfo { sack, timestamps, ecn, .. } = *info;
    let connection = Connection {
        sack,
        timestamps,
        ecn,
        sender_window_shift: of_sender,
        receiver_window_shift: of_receiver,
    };
    (connection != Connection::default()).then_some(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_have_the_same_shifts_by_other_names() {
        let sender =
            TcpInfo { sack: Some(true), snd_wscale: Some(9), rcv_wscale: Some(7), ..Default::default() };
        let receiver =
            TcpInfo { sack: Some(true), snd_wscale: Some(7), rcv_wscale: Some(9), ..Default::default() };
        assert_eq!(of_sender(&sender), of_receiver(&receiver));
        assert_eq!(of_sender(&sender).unwrap().receiver_window_shift, Some(9));
        assert_eq!(of_sender(&TcpInfo::default()), None);
    }
}
